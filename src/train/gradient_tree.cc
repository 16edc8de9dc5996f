#include "train/gradient_tree.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace muster::train {
namespace {

void AddInto(std::span<float> sum, std::span<const float> left) {
  float* out = sum.data();
  const float* in = left.data();
  for (std::size_t i = 0; i < sum.size(); ++i) out[i] = in[i] + out[i];
}

}  // namespace

GradientTree::GradientTree(std::uint32_t leaves) : leaves_(leaves) {
  MUSTER_CHECK(std::has_single_bit(leaves));
}

void GradientTree::Join(std::size_t unit, std::uint32_t leaf, std::span<float> gradients) {
  MUSTER_CHECK(leaf < leaves_);
  if (leaves_ == 1) return;
  if (partial_.size() <= unit) partial_.resize(unit + 1);
  auto& levels = partial_[unit];
  std::size_t level = 0;
  for (; (leaf >> level & 1U) != 0; ++level) AddInto(gradients, levels[level]);
  if (leaf + 1 == leaves_) return;
  if (levels.size() <= level) levels.resize(level + 1);
  levels[level].assign(gradients.begin(), gradients.end());
}

}  // namespace muster::train
