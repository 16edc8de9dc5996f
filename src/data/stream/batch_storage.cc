#include "data/stream/batch_storage.h"

namespace muster::data {
namespace {

std::size_t Padded(std::size_t bytes) {
  return (bytes + kPixelAlignment - 1) / kPixelAlignment * kPixelAlignment;
}

}  // namespace

BatchStorage::BatchStorage(std::span<const SlotRange> ranges, const ImageShape& image) {
  std::size_t total = 0;
  for (const SlotRange& range : ranges) {
    pixel_begin.push_back(total);
    total += Padded(range.count * image.bytes());
    rows.emplace_back(range.count);
    labels.emplace_back(range.count);
  }
  pixels.reset(new (std::align_val_t{kPixelAlignment})
                   std::uint8_t[std::max<std::size_t>(total, 1)]);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    shards.push_back({.index = ranges[i].index,
                      .rows = rows[i],
                      .labels = labels[i],
                      .pixels = {pixels.get() + pixel_begin[i], ranges[i].count * image.bytes()}});
  }
}

std::span<std::uint8_t> BatchStorage::Pixels(std::size_t shard) {
  return {pixels.get() + pixel_begin[shard], shards[shard].pixels.size()};
}

std::size_t BatchStorage::BytesFor(std::span<const SlotRange> ranges, const ImageShape& image) {
  std::size_t total = sizeof(BatchStorage);
  for (const SlotRange& range : ranges) {
    total += Padded(range.count * image.bytes()) + range.count * 16 + sizeof(MicroShard);
  }
  return total;
}

std::uint64_t Batch::step() const { return storage_->step; }
std::uint64_t Batch::epoch() const { return storage_->epoch; }
std::span<const MicroShard> Batch::shards() const { return storage_->shards; }

}  // namespace muster::data
