#pragma once
// The order of an epoch as a function: position g → global row, a bijection of [0, rows). Any
// position is found alone, so a loader resumes, reshards or skips without replaying anything.
//
// Modes: sequential; shard (shards permuted, rows inside in order); window (shards permuted, then
// the rows of each `window` neighbouring shards shuffled together: reads stay local, memory is
// O(shards)); full (all rows). Permutations are the keyed Feistel network of permutation.h.
// kOrderVersion changes when any of this gives another sequence. Immutable after construction; any
// thread.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/order/permutation.h"

namespace muster::data {

inline constexpr std::uint32_t kOrderVersion = 1;
inline constexpr std::uint32_t kDefaultWindow = 16;

enum class OrderMode { kSequential, kShard, kWindow, kFull };

std::string_view NameOf(OrderMode mode);
/// Invalid, listing the four, for another name.
Result<OrderMode> ParseOrderMode(std::string_view name);

struct OrderOptions {
  OrderMode mode = OrderMode::kWindow;
  std::uint32_t window = kDefaultWindow;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
};

class Order {
 public:
  /// `shard_first_rows`: the first row of each shard and the number of rows at the end.
  Order(std::span<const std::uint64_t> shard_first_rows, const OrderOptions& options);

  std::uint64_t rows() const { return first_rows_.back(); }
  /// The row at `position` < rows().
  std::uint64_t At(std::uint64_t position) const;

 private:
  std::uint64_t AtShuffledShards(std::uint64_t position) const;

  OrderOptions options_;
  std::vector<std::uint64_t> first_rows_;
  std::vector<std::uint32_t> shards_;       ///< the shard at each place of the epoch
  std::vector<std::uint64_t> place_first_;  ///< first position of each place, rows() at the end
  std::vector<Permutation> shuffles_;       ///< of all rows (full), or of each window's
};

}  // namespace muster::data
