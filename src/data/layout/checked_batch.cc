#include "data/layout/checked_batch.h"

#include <fmt/format.h>

#include "base/crc32c.h"
#include "data/layout/row_index.h"

namespace muster::data {
namespace {

constexpr std::string_view kVerify = "'muster data verify' lists all that is damaged";

}  // namespace

Result<CheckedBatch> CheckedBatch::Read(const SplitFolder& split,
                                        const std::optional<ImageColumns>& columns,
                                        std::size_t shard, std::size_t batch,
                                        std::uint64_t first_row) {
  CheckedBatch checked(split, shard);
  Status records = Within(fmt::format("{}, batch {}", split.NameOf(shard), batch),
                          checked.CheckFrame(columns, batch));
  if (records && split.has_manifest()) records = checked.CheckIndex(batch, first_row);
  MUSTER_TRY(split.Whole(shard));
  MUSTER_TRY(std::move(records));
  return checked;
}

Status CheckedBatch::CheckFrame(const std::optional<ImageColumns>& columns, std::size_t batch) {
  const BatchEntry& entry = split_->shards()[shard_].batches[batch];
  const ByteSpan file = MUSTER_TRY(split_->Bytes(shard_));
  view_ = MUSTER_TRY(arrow::ReadBatch(file, entry.frame, split_->schema()));
  body_ = file.subspan(entry.frame.body_offset(), entry.frame.body_length);
  if (!split_->has_manifest()) return Ok();
  if (!columns) {
    return Error(Code::kDataLoss, "a set with a manifest has no column of images",
                 std::string(kVerify));
  }
  const std::uint32_t crc = FrameCrc(file, entry.frame, columns->Images(view_));
  if (crc == entry.frame_crc) return Ok();
  return Error(
      Code::kDataLoss,
      fmt::format("offsets, labels or paths are damaged: CRC32C is {:08x}, recorded {:08x}", crc,
                  entry.frame_crc),
      std::string(kVerify));
}

/// Damage of the row index is not the shard's, so it goes by the name of the index.
Status CheckedBatch::CheckIndex(std::size_t batch, std::uint64_t first_row) {
  const BatchEntry& entry = split_->shards()[shard_].batches[batch];
  const ByteSpan index = MUSTER_TRY(split_->RowIndex(shard_));
  entries_ = index.subspan(first_row * kRowEntryBytes, entry.frame.rows * kRowEntryBytes);
  const std::uint32_t crc = Crc32c(entries_);
  if (crc == entry.index_crc) return Ok();
  return Error(
      Code::kDataLoss,
      fmt::format("{}, batch {}: its part of the row index is damaged: CRC32C is {:08x}, recorded "
                  "{:08x}",
                  split_->IndexNameOf(shard_), batch, crc, entry.index_crc),
      std::string(kVerify));
}

Status CheckedBatch::CheckImage(std::uint64_t row, ByteSpan image) const {
  const Status recorded = CheckRecorded(row, image);
  if (!recorded) MUSTER_TRY(split_->Whole(shard_));
  return recorded;
}

Status CheckedBatch::CheckRecorded(std::uint64_t row, ByteSpan image) const {
  if (entries_.empty()) return Ok();
  const RowEntry entry = LoadRowEntry(entries_, row);
  const auto offset = static_cast<std::uint64_t>(image.data() - body_.data());
  if (entry.offset != offset || entry.length != image.size()) {
    // The shard's offsets were held against their CRC before.
    return Error(Code::kDataLoss,
                 fmt::format("the row index {} points somewhere else", split_->IndexNameOf(shard_)),
                 std::string(kVerify));
  }
  if (const std::uint32_t crc = Crc32c(image); crc != entry.crc) {
    return Error(
        Code::kDataLoss,
        fmt::format("the image is damaged: CRC32C is {:08x}, recorded {:08x}", crc, entry.crc),
        std::string(kVerify));
  }
  return Ok();
}

}  // namespace muster::data
