#include "train/optim/schedule.h"

#include <gtest/gtest.h>

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

TEST(Schedule, ConstantStaysAtThePeak) {
  EXPECT_EQ(LearningRate({.shape = Shape::kConstant, .peak = 3, .total = 9}, 7), 3);
}

TEST(Schedule, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(Validate({.peak = 0, .total = 10}));
  EXPECT_FALSE(Validate({.peak = 1, .total = 10, .warm_up = 11}));
  EXPECT_FALSE(Validate({.shape = Shape::kWsd, .peak = 1, .total = 10, .warm_up = 5, .decay = 6}));
  EXPECT_FALSE(Validate({.peak = 1, .total = 10, .final_fraction = 2}));
  EXPECT_TRUE(Validate({.peak = 1, .total = 10, .warm_up = 10}));
  EXPECT_FALSE(ParseShape("linear"));
  EXPECT_EQ(*ParseShape("wsd"), Shape::kWsd);
}

}  // namespace
}  // namespace muster::train
