#include "profile/report/page/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"

namespace muster::profile {
namespace {

using testing::ElementsAre;

std::vector<std::string> Labels(double low, double high, int count) {
  std::vector<std::string> labels;
  for (const Tick& tick : NiceTicks(Scale(low, high), count)) labels.push_back(tick.label);
  return labels;
}

TEST(NiceTicks, StandAtRoundNumbers) {
  EXPECT_THAT(Labels(0, 601, 8), ElementsAre("0", "100", "200", "300", "400", "500", "600"));
  EXPECT_THAT(Labels(0, 1, 4), ElementsAre("0.00", "0.25", "0.50", "0.75", "1.00"));
  EXPECT_THAT(Labels(-1, 1, 2), ElementsAre("-1", "0", "1"));
  EXPECT_THAT(Labels(0, 100'000, 2), ElementsAre("0", "50,000", "100,000"));
}

TEST(NiceTicks, StayFewAndInsideForAnyScale) {
  Rng rng(3);
  for (int i = 0; i < 10'000; ++i) {
    const double low = std::ldexp(rng.Uniform() - 0.5, static_cast<int>(rng.Below(200)) - 100);
    const double high = low + std::ldexp(rng.Uniform(), static_cast<int>(rng.Below(200)) - 100);
    const auto ticks = NiceTicks(Scale(low, high), 6);
    ASSERT_LE(ticks.size(), 14U) << low << " " << high;
    for (const Tick& tick : ticks) {
      ASSERT_GE(tick.at, 0);
      ASSERT_LE(tick.at, 1);
    }
  }
}

TEST(Scale, IsNeverDegenerate) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [low, high] :
       {std::pair(1.0, 1.0), {0.0, 0.0}, {nan, 1.0}, {0.0, 1e308}, {2.0, 1.0}}) {
    const Scale scale(low, high);
    EXPECT_LT(scale.low(), scale.high());
    EXPECT_TRUE(std::isfinite(scale.At(0.5)));
    EXPECT_EQ(scale.At(nan), 0);
  }
}

TEST(NiceCeiling, IsRoundAndNotBelow) {
  EXPECT_DOUBLE_EQ(NiceCeiling(0.093), 0.1);
  EXPECT_DOUBLE_EQ(NiceCeiling(100), 100);
  EXPECT_DOUBLE_EQ(NiceCeiling(0), 1);
  EXPECT_DOUBLE_EQ(NiceCeiling(std::nan("")), 1);
}

}  // namespace
}  // namespace muster::profile
