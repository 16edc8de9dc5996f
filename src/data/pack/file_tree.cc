#include "data/pack/file_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <memory>

#include "base/text.h"

namespace muster::data {
namespace {

constexpr int kMaxDepth = 32;
/// What we read, and what we name in an error instead of passing over.
constexpr std::array<std::string_view, 9> kImageEndings{".png", ".jpg",  ".jpeg", ".gif", ".bmp",
                                                        ".tif", ".tiff", ".webp", ".jfif"};

struct Entry {
  std::string name;
  bool is_folder = false;
};

bool IsNamedLikeAnImage(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string ending(name.substr(dot));
  std::ranges::transform(ending, ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::ranges::find(kImageEndings, ending) != kImageEndings.end();
}

class Walker {
 public:
  explicit Walker(FileTree& tree) : tree_(tree) {}

  Status Walk(Fd folder, const std::string& path, int depth) {
    if (depth > kMaxDepth) {
      return Error(Code::kPrecondition,
                   fmt::format("{}: more than {} folders deep", path, kMaxDepth));
    }
    if (tree_.folders.size() >= std::numeric_limits<std::uint32_t>::max()) {
      return Error(Code::kPrecondition, "too many folders");
    }
    const auto number = static_cast<std::uint32_t>(tree_.folders.size());
    tree_.folders.push_back({path});
    for (const Entry& entry : MUSTER_TRY(Read(folder.get(), path))) {
      if (!entry.is_folder) {
        Add(number, entry.name);
        continue;
      }
      const std::string below = path.empty() ? entry.name : path + "/" + entry.name;
      Fd child(::openat(folder.get(), entry.name.c_str(),
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!child.valid()) return ErrnoError("open " + tree_.root + "/" + below, errno);
      MUSTER_TRY(Walk(std::move(child), below, depth + 1));
    }
    return Ok();
  }

 private:
  Result<std::vector<Entry>> Read(int folder, const std::string& path) {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(
        ::fdopendir(::fcntl(folder, F_DUPFD_CLOEXEC, 0)), ::closedir);
    if (!stream) return ErrnoError("list " + tree_.root + "/" + path, errno);
    std::vector<Entry> entries;
    errno = 0;
    while (const dirent* found = ::readdir(stream.get())) {
      const std::string_view name = found->d_name;
      if (name != "." && name != "..") MUSTER_TRY(AddEntry(folder, path, *found, entries));
      errno = 0;
    }
    if (errno != 0) return ErrnoError("list " + tree_.root + "/" + path, errno);
    std::ranges::sort(entries, {}, &Entry::name);
    return entries;
  }

  /// Links and special files with an image's name stay in the list: reading them gives the error.
  Status AddEntry(int folder, const std::string& path, const dirent& found,
                  std::vector<Entry>& entries) {
    const std::string name = found.d_name;
    const std::string shown = ShownName(path.empty() ? name : path + "/" + name);
    const unsigned char type = MUSTER_TRY(TypeOf(folder, shown, found));
    const bool image = type != DT_DIR && IsNamedLikeAnImage(name);
    if (name[0] == '.') {
      if (image || type == DT_DIR) tree_.hidden.Add(shown);
    } else if (image) {
      entries.push_back({name, false});
    } else if (type == DT_LNK && LeadsToAFolder(folder, name)) {
      tree_.links.Add(shown);
    } else if (type != DT_DIR) {
      tree_.ignored.Add(shown);
    } else if (!IsUtf8(name)) {
      tree_.unnamed.Add(shown);
    } else {
      entries.push_back({name, true});
    }
    return Ok();
  }

  /// DT_DIR, DT_LNK, or another that readdir told.
  Result<unsigned char> TypeOf(int folder, const std::string& shown, const dirent& found) {
    if (found.d_type != DT_UNKNOWN) return found.d_type;
    struct stat info{};
    if (::fstatat(folder, found.d_name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
      return ErrnoError("stat " + tree_.root + "/" + shown, errno);
    }
    if (S_ISDIR(info.st_mode)) return static_cast<unsigned char>(DT_DIR);
    return static_cast<unsigned char>(S_ISLNK(info.st_mode) ? DT_LNK : DT_REG);
  }

  static bool LeadsToAFolder(int folder, const std::string& name) {
    struct stat info{};
    return ::fstatat(folder, name.c_str(), &info, 0) == 0 && S_ISDIR(info.st_mode);
  }

  void Add(std::uint32_t folder, const std::string& name) {
    tree_.files.push_back(
        {folder, static_cast<std::uint32_t>(name.size()), std::uint64_t{tree_.names.size()}});
    tree_.names += name;
  }

  FileTree& tree_;
};

Result<Fd> OpenRoot(const std::string& root) {
  Fd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError("open " + root, errno);
  return fd;
}

}  // namespace

std::string FileTree::PathOf(const File& file) const {
  const std::string& folder = folders[file.folder].path;
  return folder.empty() ? std::string(NameOf(file)) : fmt::format("{}/{}", folder, NameOf(file));
}

std::string ShownName(std::string_view name) {
  if (IsUtf8(name)) return std::string(name);
  std::string shown;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", byte);
    }
  }
  return shown;
}

Result<FileTree> WalkImages(const std::string& root) {
  FileTree tree{.root = root};
  MUSTER_TRY(Walker(tree).Walk(MUSTER_TRY(OpenRoot(root)), "", 0));
  return tree;
}

Result<Fd> OpenFolder(const FileTree& tree, std::uint32_t folder) {
  Fd at = MUSTER_TRY(OpenRoot(tree.root));
  std::string_view rest = tree.folders[folder].path;
  while (!rest.empty()) {
    const std::string name(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    Fd next(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) {
      return ErrnoError(fmt::format("open {}/{}", tree.root, tree.folders[folder].path), errno);
    }
    at = std::move(next);
  }
  return at;
}

}  // namespace muster::data
