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
      return Error(Code::kInvalid, fmt::format("{}: more than {} folders deep", path, kMaxDepth));
    }
    if (tree_.folders.size() >= std::numeric_limits<std::uint32_t>::max()) {
      return Error(Code::kInvalid, "too many folders");
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
      if (found->d_name[0] != '.') {
        MUSTER_TRY(AddEntry(folder, path, *found, entries));
      }
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
    unsigned char type = found.d_type;
    if (type == DT_UNKNOWN) {
      struct stat info{};
      if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0) {
        return ErrnoError("stat " + tree_.root + "/" + path + "/" + name, errno);
      }
      type = S_ISDIR(info.st_mode) ? DT_DIR : DT_REG;
    }
    if (type != DT_DIR && !IsNamedLikeAnImage(name)) {
      if (tree_.ignored++ == 0) {
        tree_.first_ignored = path.empty() ? name : path + "/" + name;
      }
      return Ok();
    }
    if (!IsUtf8(name)) {
      return Error(Code::kInvalid,
                   fmt::format("{}/{} has a name that is not UTF-8 ({} bytes)", tree_.root, path,
                               name.size()),
                   "rename it, e.g. with convmv");
    }
    entries.push_back({name, type == DT_DIR});
    return Ok();
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
