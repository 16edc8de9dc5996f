#pragma once
// The memory of one rank's share of a step: ids, labels and pixels, each micro-shard's pixels on 64
// bytes. Filled by decode threads, a micro-shard each; immutable once the loader hands it out.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "data/loader.h"
#include "data/stream/step_plan.h"

namespace muster::data {

inline constexpr std::size_t kPixelAlignment = 64;

struct BatchStorage {
  struct Free {
    void operator()(std::uint8_t* memory) const {
      ::operator delete[](memory, std::align_val_t{kPixelAlignment});
    }
  };

  BatchStorage(std::span<const SlotRange> ranges, const ImageShape& image);
  /// The pixels of micro-shard `shard`, to be filled.
  std::span<std::uint8_t> Pixels(std::size_t shard);
  /// What a storage of this plan takes.
  static std::size_t BytesFor(std::span<const SlotRange> ranges, const ImageShape& image);

  std::uint64_t step = 0;
  std::uint64_t epoch = 0;
  std::vector<std::vector<std::uint64_t>> rows;
  std::vector<std::vector<std::int64_t>> labels;
  std::vector<std::size_t> pixel_begin;
  std::unique_ptr<std::uint8_t[], Free> pixels;
  std::vector<MicroShard> shards;
};

}  // namespace muster::data
