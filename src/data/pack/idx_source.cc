// Images and labels of the MNIST family as rows: pixels become PNG files.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iterator>

#include "base/durable.h"
#include "base/file_system.h"
#include "base/mutex.h"
#include "base/text.h"
#include "data/layout/hf_check.h"
#include "data/pack/byte_stream.h"
#include "data/pack/census.h"
#include "data/pack/idx_format.h"
#include "data/pack/input.h"

namespace muster::data {
namespace {

constexpr std::size_t kImageHeader = IdxHeaderBytes(3);
constexpr std::uint64_t kMaxLabels = 1u << 30;

/// Files that belong together: "train-images-idx3-ubyte.gz" and "train-labels-idx1-ubyte.gz".
struct IdxPair {
  std::string split;
  std::string images;
  std::string labels;
};

Error Short(const std::string& path, std::uint64_t have, std::uint64_t want) {
  return Error(Code::kDataLoss,
               fmt::format("{}: the body has {} bytes, the header promises {}", path, have, want),
               "the file was cut short; fetch it again");
}

Status CheckEnd(ByteStream& stream, const std::string& path) {
  std::byte one;
  if (MUSTER_TRY(stream.Read({&one, 1})) == 0) return Ok();
  return Error(Code::kDataLoss, path + ": there are more bytes than the header promises",
               "is it the right file? fetch it again");
}

Result<IdxHeader> TakeHeader(ByteStream& stream, const std::string& path,
                             std::uint32_t dimensions) {
  std::array<std::byte, kImageHeader> bytes;
  const MutableByteSpan wanted = MutableByteSpan(bytes).first(IdxHeaderBytes(dimensions));
  const std::size_t n = MUSTER_TRY(stream.Read(wanted));
  return Within(path, ParseIdxHeader(ByteSpan(bytes).first(n), dimensions));
}

Result<std::vector<std::uint8_t>> ReadLabels(const std::string& path) {
  const auto stream = MUSTER_TRY(ByteStream::Open(path));
  const IdxHeader header = MUSTER_TRY(TakeHeader(*stream, path, 1));
  const std::uint64_t count = header.sizes[0];
  if (count > kMaxLabels) {
    return Error(Code::kDataLoss,
                 fmt::format("{}: the header promises {} labels, at most {} are read", path, count,
                             kMaxLabels),
                 "is it the right file? fetch it again");
  }
  std::vector<std::uint8_t> labels;
  // Grown as bytes come, so that a header alone cannot make us allocate a gigabyte.
  while (labels.size() < count) {
    const std::size_t have = labels.size();
    const std::size_t step = std::min<std::size_t>(count - have, 1u << 20);
    labels.resize(have + step);
    const std::size_t n =
        MUSTER_TRY(stream->Read(std::as_writable_bytes(std::span(labels)).subspan(have)));
    if (n < step) return Short(path, have + n, count);
  }
  MUSTER_TRY(CheckEnd(*stream, path));
  return labels;
}

struct IdxSplit {
  IdxPair files;
  std::string image_name;  ///< base name of the image file, for sources
  IdxHeader header;
  std::vector<std::uint8_t> labels;
};

class IdxReader final : public RowReader {
 public:
  explicit IdxReader(const IdxSplit& split) : split_(split) {}

  Status Read(const Chunk& chunk, std::uint32_t index, RowColumns& columns) override {
    const auto size = static_cast<std::size_t>(split_.header.item_bytes());
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(chunk.raw.data()) + index * size;
    const ImageShape shape{split_.header.sizes[1], split_.header.sizes[2], 1};
    const auto png = MUSTER_TRY(EncodePng(shape, {pixels, size}));
    const std::uint64_t row = chunk.first + index;
    std::ranges::copy(png, columns.Reserve(png.size()).begin());
    columns.Add(png.size(), {.path = fmt::format("{}-{:05}.png", split_.files.split, row),
                             .label = split_.labels[row],
                             .source = NameOf(chunk, index),
                             .shape = shape});
    return Ok();
  }
  std::string NameOf(const Chunk& chunk, std::uint32_t index) const override {
    return fmt::format("{}[{}]", split_.image_name, chunk.first + index);
  }

 private:
  const IdxSplit& split_;
};

class IdxSource final : public RowSource {
 public:
  static Result<std::unique_ptr<RowSource>> Open(const IdxPair& files) {
    auto source = std::make_unique<IdxSource>();
    IdxSplit& split = source->split_;
    split.files = files;
    split.image_name = NameOf(files.images);
    split.labels = MUSTER_TRY(ReadLabels(files.labels));
    source->stream_ = MUSTER_TRY(ByteStream::Open(files.images));
    split.header = MUSTER_TRY(TakeHeader(*source->stream_, files.images, 3));
    if (split.header.sizes[0] != split.labels.size()) {
      return Error(
          Code::kDataLoss,
          fmt::format("{} has {}, {} has {}", files.images, Counted(split.header.sizes[0], "image"),
                      files.labels, Counted(split.labels.size(), "label")),
          "the two files do not belong together");
    }
    if (split.labels.empty()) {
      return Error(Code::kPrecondition, files.images + " has no images",
                   "take the file away, or fetch it again");
    }
    return std::unique_ptr<RowSource>(std::move(source));
  }

  const std::string& split() const override { return split_.files.split; }
  std::uint64_t rows() const override { return split_.labels.size(); }
  std::unique_ptr<RowReader> NewReader() const override {
    return std::make_unique<IdxReader>(split_);
  }
  /// Of each of the 256 numbers.
  std::vector<std::uint64_t> CountLabels() const {
    std::vector<std::uint64_t> counts(256);
    for (const std::uint8_t label : split_.labels) ++counts[label];
    return counts;
  }

  Result<bool> Claim(Chunk& chunk) override {
    const MutexLock lock(mutex_);
    if (next_ == rows()) return false;
    chunk.number = chunk_number_++;
    chunk.first = next_;
    const std::uint64_t size = split_.header.item_bytes();
    const std::uint64_t most = std::clamp<std::uint64_t>(kBatchBytes / size, 1, kBatchRows);
    chunk.rows = static_cast<std::uint32_t>(std::min(most, rows() - next_));
    chunk.raw.resize(chunk.rows * size);
    const std::size_t n = MUSTER_TRY(stream_->Read(chunk.raw));
    if (n < chunk.raw.size()) return Short(split_.files.images, next_ * size + n, rows() * size);
    next_ += chunk.rows;
    if (next_ == rows()) MUSTER_TRY(CheckEnd(*stream_, split_.files.images));
    return true;
  }

 private:
  IdxSplit split_;
  Mutex mutex_;
  std::unique_ptr<ByteStream> stream_;
  std::uint64_t next_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t chunk_number_ MUSTER_GUARDED_BY(mutex_) = 0;
};

constexpr std::array<std::string_view, 2> kImageMarks{"images-idx3-ubyte", "images.idx3-ubyte"};

/// "train-images-idx3-ubyte.gz" → position of "images…", or npos.
std::size_t FindImageMark(const std::string& name) {
  for (const std::string_view mark : kImageMarks) {
    const auto at = name.find(mark);
    const std::string_view rest =
        at == std::string::npos ? "-" : std::string_view(name).substr(at + mark.size());
    if (rest.empty() || rest == ".gz") return at;
  }
  return std::string::npos;
}

/// "emnist-letters" → "emnist_letters": HF opens no split of another name.
std::string HfSplitName(std::string_view prefix) {
  std::string name(prefix);
  if (IsHfSplitName(name)) return name;
  for (char& c : name) {
    if (static_cast<unsigned char>(c) < 0x80 && std::isalnum(static_cast<unsigned char>(c)) == 0) {
      c = '_';
    }
  }
  return name;
}

std::string SplitName(std::string_view prefix) {
  while (!prefix.empty() && (prefix.back() == '-' || prefix.back() == '.')) prefix.remove_suffix(1);
  if (prefix.find("train") != std::string_view::npos) return "train";
  if (prefix.find("t10k") != std::string_view::npos ||
      prefix.find("test") != std::string_view::npos) {
    return "test";
  }
  return prefix.empty() ? "train" : HfSplitName(prefix);
}

/// One of a pair may be compressed and the other not.
std::string OtherSuffixIfAbsent(const std::vector<std::string>& names, const std::string& name) {
  const std::string other = name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name + ".gz";
  const bool absent = !std::ranges::binary_search(names, name);
  return absent && std::ranges::binary_search(names, other) ? other : name;
}

Result<std::vector<IdxPair>> FindPairs(const std::string& path) {
  const std::vector<std::string> names = MUSTER_TRY(PosixFiles().List(path));
  std::vector<IdxPair> pairs;
  for (const std::string& name : names) {
    const auto at = FindImageMark(name);
    if (at == std::string::npos) continue;
    std::string labels = name;
    labels.replace(at, 6, "labels").replace(at + 7, 4, "idx1");
    IdxPair pair{SplitName(name.substr(0, at)), path + "/" + name,
                 path + "/" + OtherSuffixIfAbsent(names, labels)};
    const auto same = [&](const IdxPair& other) { return other.split == pair.split; };
    if (const auto found = std::ranges::find_if(pairs, same); found != pairs.end()) {
      return Error(
          Code::kPrecondition,
          fmt::format("{} and {} are both the {} images", found->images, pair.images, pair.split),
          "keep one of them");
    }
    pairs.push_back(std::move(pair));
  }
  // Training rows first, as every reader of such sets expects.
  std::ranges::sort(pairs, {},
                    [](const IdxPair& p) { return std::pair(p.split != "train", p.split); });
  return pairs;
}

const std::vector<std::string>& FashionNames() {
  static const std::vector<std::string> names{"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                              "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                              "Bag",         "Ankle boot"};
  return names;
}

/// The user's names, the known ones of Fashion-MNIST, or the numbers.
Result<std::vector<std::string>> NamesFor(const std::string& path, const InputOptions& options,
                                          unsigned classes, std::vector<std::string>& notes) {
  if (!options.label_names.empty()) {
    if (options.label_names.size() < classes) {
      return Error(
          Code::kInvalid,
          fmt::format("{}, but {} has labels up to {}",
                      Counted(options.label_names.size(), "label name"), path, classes - 1),
          "--labels needs a name for each number from 0 on");
    }
    return options.label_names;
  }
  std::error_code ignored;
  const std::string folder = std::filesystem::canonical(path, ignored).filename();
  if (folder.find("fashion") != std::string::npos && classes <= FashionNames().size()) {
    notes.push_back(
        "label names: the ten of Fashion-MNIST, by the input's name (change with --labels)");
    return FashionNames();
  }
  std::vector<std::string> numbers;
  for (unsigned i = 0; i < classes; ++i) numbers.push_back(std::to_string(i));
  notes.push_back(fmt::format("label names: 0 to {} (name them with --labels)", classes - 1));
  return numbers;
}

}  // namespace

Result<bool> HasIdxFiles(const std::string& path) {
  const std::vector<std::string> names = MUSTER_TRY(PosixFiles().List(path));
  return std::ranges::any_of(
      names, [](const std::string& name) { return FindImageMark(name) != std::string::npos; });
}

Result<PackInput> OpenIdxFolder(const std::string& path, const InputOptions& options) {
  const std::vector<IdxPair> pairs = MUSTER_TRY(FindPairs(path));
  if (pairs.empty()) {
    return Error(Code::kNotFound, fmt::format("no idx images in {}", path),
                 "they are named like train-images-idx3-ubyte or train-images-idx3-ubyte.gz");
  }
  PackInput input;
  std::vector<SplitClasses> counts;
  unsigned classes = 0;
  for (const IdxPair& pair : pairs) {
    auto source = MUSTER_TRY(IdxSource::Open(pair));
    counts.push_back({pair.split, static_cast<const IdxSource&>(*source).CountLabels()});
    for (unsigned label = 0; label < 256; ++label) {
      if (counts.back().images[label] > 0) classes = std::max(classes, label + 1);
    }
    input.splits.push_back(std::move(source));
  }
  input.label_names = MUSTER_TRY(NamesFor(path, options, classes, input.notes));
  for (SplitClasses& split : counts) split.images.resize(input.label_names.size());
  std::ranges::move(NotesOnClasses(input.label_names, counts), std::back_inserter(input.notes));
  return input;
}

}  // namespace muster::data
