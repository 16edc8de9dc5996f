#include "data/verify/verify.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "base/crc32c.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/worker_pool.h"
#include "data/decode/image.h"
#include "data/layout/image_columns.h"
#include "data/layout/row_index.h"

namespace muster::data {
namespace {

constexpr std::size_t kMostListed = 100;

/// Whether the error says something about the bytes, and not only that they cannot be seen here.
bool IsDamage(const Error& error) {
  switch (error.code()) {
    case Code::kInvalid:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kConflict:
    case Code::kDataLoss:
    case Code::kBug:
      return true;
    case Code::kPrecondition:
    case Code::kUnauthenticated:
    case Code::kDenied:
    case Code::kExhausted:
    case Code::kUnavailable:
    case Code::kDeadline:
    case Code::kCancelled:
      return false;
  }
  return true;
}

/// Adds up what the threads read.
class Progress {
 public:
  Progress(std::uint64_t all, const VerifyOptions& options) : all_(all), options_(options) {}

  void Add(std::uint64_t bytes) {
    if (!options_.on_progress) return;
    const MutexLock lock(mutex_);
    done_ += bytes;
    options_.on_progress(std::min(done_, all_), all_);
  }

 private:
  const std::uint64_t all_;
  const VerifyOptions& options_;
  Mutex mutex_;
  std::uint64_t done_ MUSTER_GUARDED_BY(mutex_) = 0;
};

/// Looks at one shard; its report counts that shard alone.
class Verifier {
 public:
  Verifier(const SplitFolder& split, VerifyReport& report, Progress& progress)
      : split_(split), report_(report), progress_(progress) {
    auto columns = ImageColumns::Find(split.schema(), split.features());
    if (columns) columns_ = *columns;
  }

  void Run(std::size_t shard) {
    ++report_.shards;
    const ShardEntry& entry = split_.shards()[shard];
    report_.recorded = {.batches = entry.batches.size(), .rows = entry.rows, .bytes = entry.bytes};
    if (const Error* damage = split_.DamageOf(shard)) {
      AddError(split_.NameOf(shard), -1, *damage);
      progress_.Add(split_.shards()[shard].bytes);
      return;
    }
    const std::vector<std::size_t> parts =
        split_.has_manifest() ? BadParts(shard) : std::vector<std::size_t>();
    CheckStream(shard);
    if (!split_.has_manifest()) progress_.Add(split_.shards()[shard].bytes);
    if (report_.damages != 0) return;
    // A part that is bad though all batches are whole: the schema, padding or the end mark.
    for (const std::size_t part : parts) {
      Add(shard, -1, -1,
          fmt::format("bytes {} to {} fail their CRC32C", part * kPartBytes,
                      (part + 1) * kPartBytes - 1));
    }
  }

 private:
  void Add(std::size_t shard, std::int64_t batch, std::int64_t row, std::string what) {
    AddAt(split_.NameOf(shard), batch, row, std::move(what));
  }
  void AddAt(std::string file, std::int64_t batch, std::int64_t row, std::string what) {
    ++report_.damages;
    if (report_.first.size() >= kMostListed) return;
    report_.first.push_back({std::move(file), batch, row, std::move(what)});
  }

  void AddError(const std::string& file, std::int64_t batch, const Error& error) {
    if (IsDamage(error)) return AddAt(file, batch, -1, error.message());
    if (report_.unread) return;
    const bool named = error.message().find(file) != std::string::npos;
    report_.unread = named ? error : Error(error).Within(file);
  }

  /// Reads the file as a whole; the parts whose CRC is another one.
  std::vector<std::size_t> BadParts(std::size_t shard) {
    const ShardEntry& entry = split_.shards()[shard];
    const std::string path = split_.place().folder + "/" + entry.name;
    std::vector<std::size_t> bad;
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) {
      AddError(split_.NameOf(shard), -1, ErrnoError("open", errno));
      return bad;
    }
    StreamDigest digest;
    buffer_.resize(kPartBytes);
    for (std::size_t part = 0; part < entry.part_crcs.size(); ++part) {
      const std::uint64_t offset = part * kPartBytes;
      const std::uint64_t want = std::min<std::uint64_t>(kPartBytes, entry.bytes - offset);
      const auto got = ReadAt(fd.get(), offset, want);
      if (!got) {
        AddError(split_.NameOf(shard), -1, got.error());
        return bad;
      }
      digest.Add(*got);
      if (Crc32c(*got) != entry.part_crcs[part]) bad.push_back(part);
      progress_.Add(got->size());
    }
    report_.bytes += entry.bytes;
    if (bad.empty() && digest.Finish() != entry.digest) {
      Add(shard, -1, -1, "the digest of the file is another one");
    }
    return bad;
  }

  Result<ByteSpan> ReadAt(int fd, std::uint64_t offset, std::uint64_t want) {
    std::uint64_t have = 0;
    while (have < want) {
      const auto n =
          ::pread(fd, buffer_.data() + have, want - have, static_cast<off_t>(offset + have));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoError(fmt::format("read at byte {}", offset + have), errno);
      if (n == 0) return Error(Code::kDataLoss, fmt::format("ends at byte {}", offset + have));
      have += static_cast<std::uint64_t>(n);
    }
    return ByteSpan(buffer_).first(want);
  }

  /// The messages in the file's own order, then each batch against its record.
  void CheckStream(std::size_t shard) {
    const auto file = split_.Bytes(shard);
    if (!file) return AddError(split_.NameOf(shard), -1, file.error());
    if (!split_.has_manifest()) report_.bytes += file->size();
    const ShardEntry& entry = split_.shards()[shard];
    auto walker = arrow::StreamWalker::Open(*file);
    if (!walker) Add(shard, -1, -1, walker.error().message());
    ByteSpan index;
    if (split_.has_manifest()) {
      auto entries = split_.RowIndex(shard);
      if (entries)
        index = *entries;
      else
        AddError("_muster/" + entry.name + ".idx", -1, entries.error());
    }
    std::uint64_t first_row = 0;
    for (std::size_t b = 0; b < entry.batches.size(); ++b) {
      CheckBatch(shard, b, *file,
                 index.empty() ? index : index.subspan(first_row * kRowEntryBytes));
      first_row += entry.batches[b].frame.rows;
    }
    if (walker) CheckWalk(shard, *walker);
  }

  void CheckWalk(std::size_t shard, arrow::StreamWalker& walker) {
    const ShardEntry& entry = split_.shards()[shard];
    for (std::size_t b = 0;; ++b) {
      const auto frame = walker.Next();
      const auto batch = static_cast<std::int64_t>(b);
      if (!frame) return Add(shard, batch, -1, frame.error().message());
      if (!*frame && b == entry.batches.size()) return;
      if (!*frame || b >= entry.batches.size() || **frame != entry.batches[b].frame) {
        return Add(shard, batch, -1, "the stream has other batches than the manifest");
      }
    }
  }

  void CheckBatch(std::size_t shard, std::size_t b, ByteSpan file, ByteSpan index) {
    ++report_.batches;
    const BatchEntry& entry = split_.shards()[shard].batches[b];
    const auto number = static_cast<std::int64_t>(b);
    report_.rows += entry.frame.rows;
    const auto batch = arrow::ReadBatch(file, entry.frame, split_.schema());
    if (!batch) return Add(shard, number, -1, batch.error().message());
    if (!columns_) return;
    const arrow::ArrayView& images = columns_->Images(*batch);
    if (split_.has_manifest()) {
      if (FrameCrc(file, entry.frame, images) != entry.frame_crc) {
        Add(shard, number, -1, "offsets, labels or paths fail their CRC32C");
      }
      if (!index.empty() &&
          Crc32c(index.first(entry.frame.rows * kRowEntryBytes)) != entry.index_crc) {
        Add(shard, number, -1, "its part of the row index fails its CRC32C");
        index = {};
      }
    }
    const ByteSpan body = file.subspan(entry.frame.body_offset(), entry.frame.body_length);
    const arrow::ArrayView& image = batch->columns[static_cast<std::size_t>(columns_->image)];
    for (std::int64_t row = 0; row < batch->rows; ++row) {
      CheckLabel(shard, number, *batch, row);
      if (image.IsNull(row) || images.IsNull(row)) {
        Add(shard, number, row, "the row holds no image bytes");
        continue;
      }
      const Status checked = CheckRow(images.Bytes(row), body, index, row);
      if (!checked) Add(shard, number, row, checked.error().message());
    }
  }

  /// Hugging Face writes −1, or nothing, where a row has no label.
  void CheckLabel(std::size_t shard, std::int64_t batch, const arrow::BatchView& view,
                  std::int64_t row) {
    const auto classes = static_cast<std::int64_t>(split_.features().label_names.size());
    if (columns_->label < 0 || classes == 0) return;
    const arrow::ArrayView& labels = view.columns[static_cast<std::size_t>(columns_->label)];
    const std::int64_t label = labels.IsNull(row) ? -1 : labels.Integer(row);
    if (label == -1) {
      ++report_.unlabelled;
    } else if (label < 0 || label >= classes) {
      Add(shard, batch, row,
          fmt::format("the label is {}, the set names the classes 0 to {}", label, classes - 1));
    }
  }

  static Status CheckRow(ByteSpan image, ByteSpan body, ByteSpan index, std::int64_t row) {
    if (!index.empty()) {
      const RowEntry entry = LoadRowEntry(index, static_cast<std::uint64_t>(row));
      const auto offset = static_cast<std::uint64_t>(image.data() - body.data());
      if (entry.offset != offset || entry.length != image.size()) {
        return Error(Code::kDataLoss, "the row index points somewhere else");
      }
      if (Crc32c(image) != entry.crc) return Error(Code::kDataLoss, "the image fails its CRC32C");
    }
    // Whoever packed it chose how large an image may be; nothing is decoded here.
    const auto header = ReadImageHeader(image, kAnyPixels);
    if (!header) return Error(header.error()).Within("the image");
    return Ok();
  }

  const SplitFolder& split_;
  VerifyReport& report_;
  Progress& progress_;
  std::optional<ImageColumns> columns_;
  std::vector<std::byte> buffer_;
};

}  // namespace

std::string Damage::ToString() const {
  std::string text = file;
  if (batch >= 0) text += fmt::format(", batch {}", batch);
  if (row >= 0) text += fmt::format(", row {}", row);
  if (text == file && what.find(file) != std::string::npos) return what;
  return text + ": " + what;
}

namespace {

/// A split, and what was found in each of its shards.
struct Opened {
  std::unique_ptr<SplitFolder> split;
  VerifyReport report;
  std::vector<VerifyReport> shards;
};

void AddFinding(VerifyReport& report, const std::string& file, const Error& error) {
  if (!IsDamage(error)) {
    if (!report.unread) report.unread = error;
    return;
  }
  ++report.damages;
  report.first.push_back({file, -1, -1, error.message()});
}

/// Class names are of whole numbers in a column that is there.
Status CheckLabelColumn(const SplitFolder& split) {
  const Features& features = split.features();
  if (!split.has_schema() || features.label.empty() || features.label_names.empty()) return Ok();
  const int column = split.schema().IndexOf(features.label);
  if (column < 0) {
    return Error(Code::kDataLoss, fmt::format("there is no label column '{}'", features.label));
  }
  if (split.schema().fields[static_cast<std::size_t>(column)].type == arrow::TypeId::kInt) {
    return Ok();
  }
  return Error(Code::kDataLoss,
               fmt::format("the label column '{}' holds no whole numbers", features.label));
}

Opened Open(const SplitPlace& place) {
  Opened opened{.split = nullptr, .report = {.split = place.name}, .shards = {}};
  auto split = SplitFolder::Open(place, OnDamage::kKeep);
  if (!split) {
    AddFinding(opened.report, place.folder, split.error());
    return opened;
  }
  opened.split = *std::move(split);
  opened.report.opened = true;
  opened.report.id = opened.split->id();
  opened.report.has_checksums = opened.split->has_manifest();
  opened.report.lost_checksums = opened.split->lost_manifest();
  opened.shards.resize(opened.split->shards().size());
  for (const Error& finding : opened.split->Findings()) {
    AddFinding(opened.report, place.folder, finding);
  }
  if (const Status labels = CheckLabelColumn(*opened.split); !labels) {
    AddFinding(opened.report, place.folder, labels.error());
  }
  return opened;
}

/// The shards' findings in their order.
VerifyReport Sum(Opened& opened) {
  VerifyReport& sum = opened.report;
  for (VerifyReport& shard : opened.shards) {
    sum.shards += shard.shards;
    sum.batches += shard.batches;
    sum.rows += shard.rows;
    sum.bytes += shard.bytes;
    sum.recorded.batches += shard.recorded.batches;
    sum.recorded.rows += shard.recorded.rows;
    sum.recorded.bytes += shard.recorded.bytes;
    sum.damages += shard.damages;
    sum.unlabelled += shard.unlabelled;
    if (!sum.unread) sum.unread = std::move(shard.unread);
    for (Damage& damage : shard.first) {
      if (sum.first.size() < kMostListed) sum.first.push_back(std::move(damage));
    }
  }
  return std::move(sum);
}

Status VerifyAll(std::vector<Opened>& opened, const VerifyOptions& options, Progress& progress) {
  std::unique_ptr<WorkerPool> pool;
  if (options.threads > 1) {
    pool = MUSTER_TRY(
        Within("verify", WorkerPool::Start({.name = "muster-verify", .threads = options.threads})));
  }
  for (Opened& set : opened) {
    for (std::size_t shard = 0; shard < set.shards.size(); ++shard) {
      const auto look = [&set, &progress, shard](const std::stop_token&) {
        Verifier(*set.split, set.shards[shard], progress).Run(shard);
      };
      if (pool == nullptr) {
        look({});
      } else {
        MUSTER_TRY(pool->Submit(look));
      }
    }
  }
  if (pool != nullptr) pool->Finish();
  return Ok();
}

}  // namespace

Result<std::vector<VerifyReport>> VerifySplits(const std::vector<SplitPlace>& places,
                                               const VerifyOptions& options) {
  std::vector<Opened> opened;
  std::uint64_t all = 0;
  for (const SplitPlace& place : places) {
    opened.push_back(Open(place));
    if (opened.back().split == nullptr) continue;
    for (const ShardEntry& shard : opened.back().split->shards()) all += shard.bytes;
  }
  Progress progress(all, options);
  MUSTER_TRY(VerifyAll(opened, options, progress));
  std::vector<VerifyReport> reports;
  for (Opened& set : opened) reports.push_back(Sum(set));
  return reports;
}

VerifyReport VerifySplit(const SplitPlace& place) {
  // One thread is the caller's, so nothing can fail to start.
  return std::move(VerifySplits({place})->front());
}

}  // namespace muster::data
