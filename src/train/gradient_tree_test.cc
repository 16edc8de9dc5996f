#include "train/gradient_tree.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace muster::train {
namespace {

// Values whose sum depends on the order.
float Leaf(std::uint32_t leaf, std::size_t i) {
  return std::ldexp(1.0F + 0.123F * static_cast<float>(leaf), static_cast<int>(7 * leaf + i) % 30);
}

TEST(GradientTree, SumsItsLeavesPairwise) {
  constexpr std::size_t kLength = 33;
  GradientTree tree(4);
  for (int step = 0; step < 2; ++step) {
    std::array<float, kLength> buffer{};
    for (std::uint32_t leaf = 0; leaf < 4; ++leaf) {
      for (std::size_t i = 0; i < kLength; ++i) buffer[i] = Leaf(leaf, i);
      tree.Join(0, leaf, buffer);
    }
    for (std::size_t i = 0; i < kLength; ++i) {
      EXPECT_EQ(buffer[i], (Leaf(0, i) + Leaf(1, i)) + (Leaf(2, i) + Leaf(3, i)));
    }
  }
}

TEST(GradientTree, LeavesASingleLeafAsItIs) {
  GradientTree tree(1);
  std::array<float, 2> buffer{1, 2};
  tree.Join(0, 0, buffer);
  EXPECT_EQ(buffer, (std::array<float, 2>{1, 2}));
}

}  // namespace
}  // namespace muster::train
