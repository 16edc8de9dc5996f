#include "base/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace muster {
namespace {

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(Philox(0, {0, 0, 0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~0ull, {~0u, ~0u, ~0u, ~0u}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, IsAFunctionOfItsKey) {
  Rng a(5), b(5), c(6);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t draw = a.Next64();
    EXPECT_EQ(draw, b.Next64());
    differs |= draw != c.Next64();
  }
  EXPECT_TRUE(differs);
}

TEST(Rng, BelowReachesEveryValueAboutEquallyOften) {
  Rng rng(1);
  std::array<int, 7> counts{};
  constexpr int kDraws = 70'000;
  for (int i = 0; i < kDraws; ++i) ++counts[rng.Below(7)];
  // 10,000 ± 5 standard deviations of a binomial.
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 7, 465);
}

TEST(Rng, UniformStaysBelowOne) {
  Rng rng(2);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double draw = rng.Uniform();
    ASSERT_GE(draw, 0);
    ASSERT_LT(draw, 1);
    sum += draw;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.015);  // 5 standard deviations
}

TEST(Mix, DependsOnEveryPartAndItsPlace) {
  std::set<std::uint64_t> seen{Mix(1, 2, 3, 4), Mix(2, 1, 3, 4), Mix(1, 3, 2, 4), Mix(1, 2, 4, 3),
                               Mix(1, 2, 3),    Mix(1, 2),       Mix(1)};
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(Mix(1, 2, 3, 4), Mix(1, 2, 3, 4));
}

}  // namespace
}  // namespace muster
