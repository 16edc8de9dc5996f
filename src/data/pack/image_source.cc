// A folder of images with a class per folder as rows: files are packed as they are.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <map>
#include <new>
#include <optional>
#include <set>

#include "base/file_system.h"
#include "base/text.h"
#include "data/pack/census.h"
#include "data/pack/file_tree.h"
#include "data/pack/input.h"

namespace muster::data {
namespace {

/// A header may claim more than any machine has; an allocator must not be asked for it.
constexpr std::uint64_t kMostDecoded = std::uint64_t{1} << 36;

/// A split's share of the tree: a run of its files with their labels.
struct ImageSplit {
  std::string name;
  std::shared_ptr<const FileTree> tree;
  std::vector<std::uint32_t> files;         ///< indices into tree->files
  std::vector<std::int64_t> folder_labels;  ///< by folder of the tree
  InputOptions options;
};

class ImageReader final : public RowReader {
 public:
  explicit ImageReader(const ImageSplit& split) : split_(split) {}

  Status Read(const Chunk& chunk, std::uint32_t index, RowColumns& columns) override {
    const FileTree::File& file = FileAt(chunk, index);
    if (!IsUtf8(split_.tree->NameOf(file))) {
      return Error(Code::kPrecondition, "has a name that is not UTF-8",
                   "rename it, e.g. with convmv");
    }
    MUSTER_TRY(EnterFolder(file.folder));
    const auto image = Append(file, columns);
    if (!image) {
      columns.Drop();
      return image.error();
    }
    const FileTree& tree = *split_.tree;
    columns.Add(image->size, {.path = tree.NameOf(file),
                              .label = split_.folder_labels[file.folder],
                              .source = tree.PathOf(file),
                              .shape = image->shape});
    return Ok();
  }
  std::string NameOf(const Chunk& chunk, std::uint32_t index) const override {
    return split_.tree->root + "/" + ShownName(split_.tree->PathOf(FileAt(chunk, index)));
  }

 private:
  const FileTree::File& FileAt(const Chunk& chunk, std::uint32_t index) const {
    return split_.tree->files[split_.files[chunk.first + index]];
  }

  Status EnterFolder(std::uint32_t folder) {
    if (open_folder_ == folder) return Ok();
    folder_fd_ = MUSTER_TRY(OpenFolder(*split_.tree, folder));
    open_folder_ = folder;
    return Ok();
  }

  struct Appended {
    std::size_t size = 0;
    ImageShape shape;
  };

  Result<Appended> Append(const FileTree::File& file, RowColumns& columns) {
    const std::string name(split_.tree->NameOf(file));
    const Fd fd(
        ::openat(folder_fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid() && errno == ELOOP) {
      return Error(Code::kPrecondition, "is a symbolic link, and links are not followed",
                   "put the file itself there");
    }
    if (!fd.valid()) return ErrnoError("cannot be opened", errno);
    struct stat info{};
    if (::fstat(fd.get(), &info) < 0) return ErrnoError("cannot be read", errno);
    if (!S_ISREG(info.st_mode)) return Error(Code::kPrecondition, "is not a regular file");
    if (info.st_size > split_.options.max_file.count) {
      return Error(
          Code::kPrecondition,
          fmt::format("has {} bytes, the limit is {}", info.st_size, split_.options.max_file.count),
          "raise --max-file if you trust it");
    }
    const MutableByteSpan room = columns.Reserve(static_cast<std::size_t>(info.st_size));
    MUSTER_TRY(ReadWhole(fd.get(), room));
    return Appended{room.size(), MUSTER_TRY(Check(room))};
  }

  static Status ReadWhole(int fd, MutableByteSpan room) {
    while (!room.empty()) {
      const auto n = ::read(fd, room.data(), room.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoError("cannot be read", errno);
      if (n == 0) return Error(Code::kConflict, "became shorter while it was read");
      room = room.subspan(static_cast<std::size_t>(n));
    }
    return Ok();
  }

  Result<ImageShape> Check(ByteSpan file) {
    const ImageHeader header = MUSTER_TRY(ReadImageHeader(file, kAnyPixels));
    const std::uint64_t pixels = std::uint64_t{header.height} * header.width;
    if (pixels > split_.options.max_pixels) {
      return Error(Code::kPrecondition,
                   fmt::format("has {} × {} pixels, the limit is {}", header.width, header.height,
                               split_.options.max_pixels),
                   "raise --max-pixels if you trust it");
    }
    const ImageShape shape{header.height, header.width, header.channels};
    if (!split_.options.decode_check) return shape;
    MUSTER_TRY(MakeRoom(shape));
    MUSTER_TRY(DecodeImage(file, shape, pixels_));
    return shape;
  }

  Status MakeRoom(const ImageShape& shape) {
    if (shape.bytes() <= kMostDecoded) {
      try {
        pixels_.resize(shape.bytes());
        return Ok();
      } catch (const std::bad_alloc&) {
        pixels_.clear();  // and said below
      }
    }
    return Error(
        Code::kExhausted,
        fmt::format("needs {} bytes to decode, which this machine does not give", shape.bytes()),
        "lower --max-pixels, or take --check header");
  }

  const ImageSplit& split_;
  Fd folder_fd_;
  std::optional<std::uint32_t> open_folder_;
  std::vector<std::uint8_t> pixels_;
};

class ImageSource final : public RowSource {
 public:
  explicit ImageSource(ImageSplit split) : split_(std::move(split)) {}
  const std::string& split() const override { return split_.name; }
  std::uint64_t rows() const override { return split_.files.size(); }
  std::unique_ptr<RowReader> NewReader() const override {
    return std::make_unique<ImageReader>(split_);
  }
  Result<bool> Claim(Chunk& chunk) override {
    chunk.number = next_.fetch_add(1, std::memory_order_relaxed);
    chunk.first = chunk.number * kBatchRows;
    if (chunk.first >= rows()) return false;
    chunk.rows =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(kBatchRows, rows() - chunk.first));
    return true;
  }

 private:
  ImageSplit split_;
  std::atomic<std::uint64_t> next_ = 0;
};

/// HF's names for splits, by what people call the folders.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kSplitNames{{
    {"train", "train"},
    {"training", "train"},
    {"test", "test"},
    {"testing", "test"},
    {"eval", "test"},
    {"evaluation", "test"},
    {"val", "validation"},
    {"valid", "validation"},
    {"validation", "validation"},
    {"dev", "validation"},
}};
constexpr std::array<std::string_view, 3> kSplitOrder{"train", "validation", "test"};

std::string_view SplitOf(std::string_view folder) {
  for (const auto& [name, split] : kSplitNames) {
    if (folder == name) return split;
  }
  return {};
}

std::string_view Component(std::string_view path, int which) {
  for (; which > 0; --which) {
    const auto slash = path.find('/');
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  return path.substr(0, path.find('/'));
}

/// Every image lies below a folder that is named like a split.
bool HasSplitFolders(const FileTree& tree) {
  return std::ranges::all_of(tree.files, [&](const FileTree::File& file) {
    return !SplitOf(Component(tree.folders[file.folder].path, 0)).empty();
  });
}

bool IsNamedLikeASplit(std::string_view folder) {
  std::string lower(folder);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return !SplitOf(lower).empty();
}

/// Folders named like splits beside one that is not would become classes, and the rows of "test"
/// rows to train on. A class may have such a name (the vehicle); then --labels says so.
Status CheckNoSplitIsAClass(const std::vector<std::string>& names, const InputOptions& options,
                            const std::string& root) {
  const auto split =
      std::ranges::find_if(names, [](const std::string& name) { return IsNamedLikeASplit(name); });
  if (split == names.end() || !options.label_names.empty()) return Ok();
  const auto other =
      std::ranges::find_if(names, [](const std::string& name) { return !IsNamedLikeASplit(name); });
  const std::string why = other == names.end() ? "splits are named in lower case"
                                               : fmt::format("{}/{} is not", root, *other);
  return Error(
      Code::kPrecondition,
      fmt::format("{}/{} is named like a split, but {}: as classes they would mix test rows into "
                  "the training rows",
                  root, *split, why),
      "let every folder of INPUT be a split (train, validation, test) or none; where the name is a "
      "class's, list all classes with --labels");
}

Error NoClassFolder(const FileTree& tree, const FileTree::File& file) {
  return Error(Code::kPrecondition,
               fmt::format("{}/{} is in no class folder", tree.root, tree.PathOf(file)),
               "put each class in a folder of its own: INPUT/cat/1.png or INPUT/train/cat/1.png");
}

/// The class of every folder that has images; the names sorted.
Result<std::vector<std::string>> ClassNames(const FileTree& tree, int level) {
  std::set<std::string_view> names;
  for (const FileTree::File& file : tree.files) {
    const std::string_view name = Component(tree.folders[file.folder].path, level);
    if (name.empty()) return NoClassFolder(tree, file);
    names.insert(name);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

std::vector<std::int64_t> FolderLabels(const FileTree& tree, int level,
                                       const std::vector<std::string>& names) {
  std::map<std::string_view, std::int64_t> numbers;
  for (const std::string& name : names) {
    numbers.emplace(name, static_cast<std::int64_t>(numbers.size()));
  }
  std::vector<std::int64_t> labels;
  for (const FileTree::Folder& folder : tree.folders) {
    const auto found = numbers.find(Component(folder.path, level));
    labels.push_back(found == numbers.end() ? -1 : found->second);
  }
  return labels;
}

/// The user's order of the class names must have every class of the folder.
Status CheckNames(const std::vector<std::string>& wanted, const std::vector<std::string>& found) {
  for (const std::string& name : found) {
    if (std::ranges::find(wanted, name) != wanted.end()) continue;
    return Error(Code::kInvalid,
                 fmt::format("the class folder '{}' is not among the label names", name),
                 "--labels fixes the order of the classes, so it must list all of them");
  }
  return Ok();
}

/// How often the folders at the levels of splits and classes have no images below them.
FileTree::Left EmptyFolders(const FileTree& tree, int level) {
  std::set<std::string_view> full;
  for (const FileTree::File& file : tree.files) {
    const std::string_view path = tree.folders[file.folder].path;
    for (std::size_t end = 0; end != std::string_view::npos;) {
      end = path.find('/', end + 1);
      full.insert(path.substr(0, end));
    }
  }
  FileTree::Left empty;
  for (const FileTree::Folder& folder : tree.folders) {
    const bool counts = !folder.path.empty() && std::ranges::count(folder.path, '/') <= level;
    if (counts && !full.contains(folder.path)) empty.Add(folder.path);
  }
  return empty;
}

void AddNote(const FileTree::Left& left, std::string_view one, std::string_view many,
             std::vector<std::string>& notes) {
  if (left.count == 0) return;
  notes.push_back(left.count == 1 ? fmt::format("{}: {}", one, left.first)
                                  : fmt::format("{} {}, e.g. {}", left.count, many, left.first));
}

/// Every image below a folder that was not entered would be missing without a word.
Status CheckFolders(const FileTree& tree) {
  if (tree.links.count > 0) {
    return Error(Code::kPrecondition,
                 fmt::format("{}/{} is a link to a folder, and links are not followed", tree.root,
                             tree.links.first),
                 "put the folder itself there, or leave it out with --on-error skip");
  }
  if (tree.unnamed.count > 0) {
    return Error(
        Code::kPrecondition,
        fmt::format("the folder {}/{} has a name that is not UTF-8", tree.root, tree.unnamed.first),
        "rename it, e.g. with convmv, or leave it out with --on-error skip");
  }
  return Ok();
}

void AddNotes(const FileTree& tree, int level, std::vector<std::string>& notes) {
  AddNote(tree.ignored, "ignored a file that is not named like an image",
          "files that are not named like images were ignored", notes);
  AddNote(tree.hidden, "passed over a hidden image or folder",
          "hidden images and folders were passed over", notes);
  AddNote(tree.links, "left out a link to a folder", "links to folders were left out", notes);
  AddNote(tree.unnamed, "left out a folder whose name is not UTF-8",
          "folders whose names are not UTF-8 were left out", notes);
  AddNote(EmptyFolders(tree, level), "a folder has no images and was left out",
          "folders have no images and were left out", notes);
}

}  // namespace

Result<PackInput> OpenImageFolder(const std::string& path, const InputOptions& options) {
  const auto tree = std::make_shared<const FileTree>(MUSTER_TRY(WalkImages(path)));
  if (!options.leave_out) MUSTER_TRY(CheckFolders(*tree));
  if (tree->files.empty()) {
    const bool packed = PosixFiles().Exists(path + "/state.json") ||
                        PosixFiles().Exists(path + "/dataset_dict.json");
    return Error(Code::kNotFound, fmt::format("no images below {}", path),
                 packed ? "it is a dataset already: muster data ls " + path
                        : "expected a folder per class: INPUT/cat/1.png");
  }
  const bool with_splits = HasSplitFolders(*tree);
  const int level = with_splits ? 1 : 0;
  PackInput input;
  input.label_names = MUSTER_TRY(ClassNames(*tree, level));
  if (!with_splits) MUSTER_TRY(CheckNoSplitIsAClass(input.label_names, options, path));
  if (!options.label_names.empty()) {
    MUSTER_TRY(CheckNames(options.label_names, input.label_names));
    input.label_names = options.label_names;
  }
  const std::vector<std::int64_t> labels = FolderLabels(*tree, level, input.label_names);
  std::map<std::string_view, std::vector<std::uint32_t>> splits;
  for (std::uint32_t i = 0; i < tree->files.size(); ++i) {
    const std::string& folder = tree->folders[tree->files[i].folder].path;
    splits[with_splits ? SplitOf(Component(folder, 0)) : "train"].push_back(i);
  }
  std::vector<SplitClasses> counts;
  for (const std::string_view name : kSplitOrder) {
    const auto found = splits.find(name);
    if (found == splits.end()) continue;
    counts.push_back({std::string(name), std::vector<std::uint64_t>(input.label_names.size())});
    for (const std::uint32_t file : found->second) {
      ++counts.back().images[static_cast<std::size_t>(labels[tree->files[file].folder])];
    }
    input.splits.push_back(std::make_unique<ImageSource>(
        ImageSplit{std::string(name), tree, std::move(found->second), labels, options}));
  }
  AddNotes(*tree, level, input.notes);
  std::ranges::move(NotesOnClasses(input.label_names, counts), std::back_inserter(input.notes));
  return input;
}

}  // namespace muster::data
