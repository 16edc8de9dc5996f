#pragma once
// Which slots of the order a rank takes at a step: the arithmetic of loader.h's contract, pure, so
// that a table can test it for every world size.

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace muster::data {

struct LoaderOptions;

/// Slots [begin, begin + count) of a step's [0, B).
struct SlotRange {
  std::uint32_t index = 0;  ///< of the virtual shard, or the rank without virtual shards
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
  bool operator==(const SlotRange&) const = default;
};

/// The same for every step. Invalid, naming the option, when batch, virtual shards, world and rank
/// do not fit together.
Result<std::vector<SlotRange>> SlotsOfRank(const LoaderOptions& options);

/// Whole global batches of an epoch (kDrop), or enough to see every row (kPad).
std::uint64_t StepsPerEpoch(std::uint64_t rows, const LoaderOptions& options);

}  // namespace muster::data
