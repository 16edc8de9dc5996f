#pragma once
// Sums the gradients of a rank's micro-shards by a fixed binary tree, one unit at a time: after
// micro-shard i the buffer holds the leaf i, and it is joined with the finished subtrees to its
// left exactly as a binary counter carries. After the last one it holds the whole local subtree,
// whose parents are the sums over ranks that the collectives compute. So the tree over all virtual
// micro-shards, and with it every bit, is the same for any number of ranks.
//
// Memory: log2(leaves) partial buffers a unit, none for one leaf. Training thread.

#include <cstdint>
#include <span>
#include <vector>

namespace muster::train {

class GradientTree {
 public:
  /// `leaves` micro-shards a step, a power of two.
  explicit GradientTree(std::uint32_t leaves);

  /// Joins leaf `leaf` of the unit number `unit`, which lies in `gradients`; leaves come in order.
  void Join(std::size_t unit, std::uint32_t leaf, std::span<float> gradients);

 private:
  std::uint32_t leaves_;
  std::vector<std::vector<std::vector<float>>> partial_;  // [unit][level]
};

}  // namespace muster::train
