#include "train/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace muster::train {
namespace {

TEST(Schedule, WarmsUpLinearlyAndReachesThePeakInTheLastWarmUpStep) {
  const Schedule schedule{.peak = 2, .total = 100, .warm_up = 4};
  EXPECT_EQ(LearningRate(schedule, 0), 0.5);
  EXPECT_EQ(LearningRate(schedule, 3), 2);
  EXPECT_EQ(LearningRate(schedule, 4), 2);
}

TEST(Schedule, CosineIsHalfwayInTheMiddleAndLowAtTheEnd) {
  const Schedule schedule{.peak = 2, .total = 110, .warm_up = 10, .final_fraction = 0.1};
  EXPECT_NEAR(LearningRate(schedule, 60), 1.1, 1e-12);
  EXPECT_NEAR(LearningRate(schedule, 110), 0.2, 1e-12);
  EXPECT_NEAR(LearningRate(schedule, 5000), 0.2, 1e-12);
}

TEST(Schedule, WsdStaysAndThenFallsLinearly) {
  const Schedule schedule{
      .shape = Shape::kWsd, .peak = 1, .total = 100, .warm_up = 10, .decay = 20};
  EXPECT_EQ(LearningRate(schedule, 10), 1);
  EXPECT_EQ(LearningRate(schedule, 80), 1);
  EXPECT_NEAR(LearningRate(schedule, 90), 0.5, 1e-12);
  EXPECT_NEAR(LearningRate(schedule, 100), 0, 1e-12);
}

// Printed by torch 2.13: SequentialLR of LinearLR and CosineAnnealingLR(T_max=8, eta_min=0.2), and
// LinearLR(1.0, 0.25, total_iters=4) after a constant, each for an SGD of rate 2.
TEST(Schedule, HasTheRatesOfTorchAndEndsOneStepShortOfTheFinalFraction) {
  const Schedule cosine{.peak = 2, .total = 10, .warm_up = 2, .final_fraction = 0.1};
  const std::vector<double> expected{1,
                                     2,
                                     2,
                                     1.9314915792601581,
                                     1.7363961030678927,
                                     1.444415089128581,
                                     1.1000000000000001,
                                     0.75558491087141944,
                                     0.46360389693210741,
                                     0.26850842073984199};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(LearningRate(cosine, i), expected[i], 1e-12) << i;
  }
  EXPECT_GT(LearningRate(cosine, 9), 0.2);
  const Schedule wsd{.shape = Shape::kWsd,
                     .peak = 2,
                     .total = 10,
                     .warm_up = 2,
                     .decay = 4,
                     .final_fraction = 0.25};
  const std::vector<double> falling{2, 1.625, 1.25, 0.875};
  for (std::size_t i = 0; i < falling.size(); ++i) {
    EXPECT_NEAR(LearningRate(wsd, 6 + i), falling[i], 1e-12) << i;
  }
}

TEST(Schedule, ConstantStaysAtThePeak) {
  EXPECT_EQ(LearningRate({.shape = Shape::kConstant, .peak = 3, .total = 9}, 7), 3);
}

TEST(Schedule, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(Validate({.peak = 0, .total = 10}));
  EXPECT_FALSE(Validate({.peak = 1, .total = 10, .warm_up = 11}));
  EXPECT_FALSE(Validate({.shape = Shape::kWsd, .peak = 1, .total = 10, .warm_up = 5, .decay = 6}));
  EXPECT_FALSE(Validate({.peak = 1, .total = 10, .final_fraction = 2}));
  EXPECT_FALSE(Validate({.peak = 1, .total = 10, .final_fraction = NAN}));
  constexpr auto kWraps = std::numeric_limits<std::uint64_t>::max() - 2;
  EXPECT_FALSE(
      Validate({.shape = Shape::kWsd, .peak = 1, .total = 10, .warm_up = kWraps, .decay = 5}));
  EXPECT_TRUE(Validate({.peak = 1, .total = 10, .warm_up = 10}));
  EXPECT_FALSE(ParseShape("linear"));
  EXPECT_EQ(*ParseShape("wsd"), Shape::kWsd);
}

}  // namespace
}  // namespace muster::train
