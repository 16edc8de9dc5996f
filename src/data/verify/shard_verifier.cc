#include "data/verify/shard_verifier.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/crc32c.h"
#include "base/fd.h"
#include "data/decode/image.h"
#include "data/layout/row_index.h"

namespace muster::data {

ShardVerifier::ShardVerifier(const SplitFolder& split, std::size_t shard, VerifyReport& report,
                             std::function<void(std::uint64_t bytes)> on_read)
    : split_(split), shard_(shard), report_(report), on_read_(std::move(on_read)) {}

void ShardVerifier::Run() {
  ++report_.shards;
  report_.recorded = {
      .batches = entry().batches.size(), .rows = entry().rows, .bytes = entry().bytes};
  if (const Error* damage = split_.DamageOf(shard_)) {
    report_.AddError(split_.NameOf(shard_), -1, *damage);
    on_read_(entry().bytes);
    return;
  }
  std::vector<std::size_t> parts;
  if (split_.has_manifest()) {
    auto read = BadParts();
    if (!read) return report_.AddError(split_.NameOf(shard_), -1, read.error());
    parts = *std::move(read);
  }
  CheckStream();
  if (!split_.has_manifest()) on_read_(entry().bytes);
  if (!shard_is_whole_) return;
  // A part that is bad though all batches are whole: the schema, padding or the end mark, or an
  // image whose own CRC is lost with its part of the row index.
  for (const std::size_t part : parts) {
    Add(-1, -1,
        fmt::format("bytes {} to {} fail their CRC32C", part * kPartBytes,
                    std::min((part + 1) * kPartBytes, entry().bytes) - 1));
  }
}

void ShardVerifier::Add(std::int64_t batch, std::int64_t row, std::string what) {
  shard_is_whole_ = false;
  report_.Add({split_.NameOf(shard_), batch, row, std::move(what)});
}

void ShardVerifier::AddToIndex(std::int64_t batch, std::int64_t row, std::string what) {
  report_.Add({split_.IndexNameOf(shard_), batch, row, std::move(what)});
}

/// Reads the file as a whole; the parts whose CRC is another one.
Result<std::vector<std::size_t>> ShardVerifier::BadParts() {
  const std::string path = split_.place().folder + "/" + entry().name;
  std::vector<std::size_t> bad;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoError("open", errno);
  StreamDigest digest;
  buffer_.resize(kPartBytes);
  for (std::size_t part = 0; part < entry().part_crcs.size(); ++part) {
    const std::uint64_t offset = part * kPartBytes;
    const std::uint64_t want = std::min<std::uint64_t>(kPartBytes, entry().bytes - offset);
    const ByteSpan got = MUSTER_TRY(ReadAt(fd.get(), offset, want));
    digest.Add(got);
    if (Crc32c(got) != entry().part_crcs[part]) bad.push_back(part);
    on_read_(got.size());
  }
  report_.bytes += entry().bytes;
  if (bad.empty() && digest.Finish() != entry().digest) {
    Add(-1, -1, "the digest of the file is another one");
  }
  return bad;
}

Result<ByteSpan> ShardVerifier::ReadAt(int fd, std::uint64_t offset, std::uint64_t want) {
  std::uint64_t have = 0;
  while (have < want) {
    const auto n =
        ::pread(fd, buffer_.data() + have, want - have, static_cast<off_t>(offset + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(fmt::format("read at byte {}", offset + have), errno);
    if (n == 0) {
      return Error(Code::kDataLoss,
                   fmt::format("became shorter while it was read: was {} bytes, ends at byte {}",
                               entry().bytes, offset + have));
    }
    have += static_cast<std::uint64_t>(n);
  }
  return ByteSpan(buffer_).first(want);
}

/// The messages in the file's own order, then each batch against its record.
void ShardVerifier::CheckStream() {
  const auto file = split_.Bytes(shard_);
  if (!file) {
    shard_is_whole_ = false;
    return report_.AddError(split_.NameOf(shard_), -1, file.error());
  }
  if (!split_.has_manifest()) report_.bytes += file->size();
  auto walker = arrow::StreamWalker::Open(*file);
  if (!walker) {
    if (Whole([] {})) Add(-1, -1, walker.error().message());
    return;
  }
  schema_ = walker->schema();
  if (auto columns = ImageColumns::Find(schema_, split_.features())) columns_ = *columns;
  const ByteSpan index = OpenIndex();
  std::uint64_t first_row = 0;
  for (std::size_t b = 0; b < entry().batches.size(); ++b) {
    const ByteSpan rest = index.empty() ? index : index.subspan(first_row * kRowEntryBytes);
    if (!Whole([&] { CheckBatch(b, *file, rest); })) return;
    first_row += entry().batches[b].frame.rows;
  }
  Whole([&] { CheckWalk(*walker); });
}

bool ShardVerifier::Whole(const std::function<void()>& piece) {
  VerifyReport before = report_;
  piece();
  auto lost = split_.LostOf(shard_);
  if (!lost) return true;
  report_ = std::move(before);
  shard_is_whole_ = false;
  report_.AddError(lost->file, -1, lost->error);
  return false;
}

/// Empty when there is none to hold the rows against.
ByteSpan ShardVerifier::OpenIndex() {
  if (!split_.has_manifest()) return {};
  const auto entries = split_.RowIndex(shard_);
  if (entries) return *entries;
  report_.AddError(split_.IndexNameOf(shard_), -1, entries.error());
  return {};
}

void ShardVerifier::CheckWalk(arrow::StreamWalker& walker) {
  const std::vector<BatchEntry>& batches = entry().batches;
  for (std::size_t b = 0;; ++b) {
    const auto frame = walker.Next();
    const auto batch = static_cast<std::int64_t>(b);
    if (!frame) return Add(batch, -1, frame.error().message());
    if (!*frame && b == batches.size()) return;
    if (!*frame || b >= batches.size() || **frame != batches[b].frame) {
      return Add(batch, -1, "the stream has other batches than the manifest");
    }
  }
}

void ShardVerifier::CheckBatch(std::size_t b, ByteSpan file, ByteSpan index) {
  ++report_.batches;
  const BatchEntry& recorded = entry().batches[b];
  const auto number = static_cast<std::int64_t>(b);
  report_.rows += recorded.frame.rows;
  const auto batch = arrow::ReadBatch(file, recorded.frame, schema_);
  if (!batch) return Add(number, -1, batch.error().message());
  if (!columns_) return;
  const arrow::ArrayView& images = columns_->Images(*batch);
  if (split_.has_manifest()) {
    frame_is_whole_ = FrameCrc(file, recorded.frame, images) == recorded.frame_crc;
    if (!frame_is_whole_) Add(number, -1, "offsets, labels or paths fail their CRC32C");
    if (!index.empty() &&
        Crc32c(index.first(recorded.frame.rows * kRowEntryBytes)) != recorded.index_crc) {
      AddToIndex(number, -1, "its part of the row index fails its CRC32C");
      index = {};
    }
  }
  const ByteSpan body = file.subspan(recorded.frame.body_offset(), recorded.frame.body_length);
  const arrow::ArrayView& image = batch->columns[static_cast<std::size_t>(columns_->image)];
  for (std::int64_t row = 0; row < batch->rows; ++row) {
    CheckLabel(number, *batch, row);
    if (image.IsNull(row) || images.IsNull(row)) {
      if (split_.has_manifest()) {
        Add(number, row, "the row holds no image bytes");
      } else {
        ++report_.without_image;
      }
    } else {
      CheckRow(number, row, images.Bytes(row), body, index);
    }
  }
}

/// Hugging Face writes −1, or nothing, where a row has no label.
void ShardVerifier::CheckLabel(std::int64_t batch, const arrow::BatchView& view, std::int64_t row) {
  const auto classes = static_cast<std::int64_t>(split_.features().label_names.size());
  if (columns_->label < 0 || classes == 0) return;
  const arrow::ArrayView& labels = view.columns[static_cast<std::size_t>(columns_->label)];
  const std::int64_t label = labels.IsNull(row) ? -1 : labels.Integer(row);
  if (label == -1) {
    ++report_.unlabelled;
  } else if (label < 0 || label >= classes) {
    Add(batch, row,
        fmt::format("the label is {}, the set names the classes 0 to {}", label, classes - 1));
  }
}

/// `index`: whose CRC held, so that an image that fails an entry of it is itself the damaged one.
void ShardVerifier::CheckRow(std::int64_t batch, std::int64_t row, ByteSpan image, ByteSpan body,
                             ByteSpan index) {
  if (!index.empty()) {
    const RowEntry recorded = LoadRowEntry(index, static_cast<std::uint64_t>(row));
    const auto offset = static_cast<std::uint64_t>(image.data() - body.data());
    if (recorded.offset != offset || recorded.length != image.size()) {
      if (frame_is_whole_) return AddToIndex(batch, row, "the row index points somewhere else");
      return Add(batch, row, "the image is not where the row index has it");
    }
    if (Crc32c(image) != recorded.crc) return Add(batch, row, "the image fails its CRC32C");
  }
  // Whoever packed it chose how large an image may be; nothing is decoded here.
  const auto header = ReadImageHeader(image, kAnyPixels);
  if (!header) Add(batch, row, "the image: " + header.error().message());
}

}  // namespace muster::data
