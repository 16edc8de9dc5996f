#include "profile/report/step_series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster::profile {
namespace {

StepRow Row(std::uint64_t step, std::uint64_t generation = 1, double loss = 1) {
  return {.step = step, .generation = generation, .total_us = 1000, .loss = loss};
}

TEST(LastRuns, KeepsTheStepThatCounted) {
  const auto steps = LastRuns({Row(1), Row(2), Row(3), Row(2, 2), Row(3, 2), Row(4, 2)});
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps[0].generation, 1U);
  EXPECT_EQ(steps[1].generation, 2U);
  EXPECT_EQ(steps[2].generation, 2U);
}

TEST(WithoutEvaluation, TakesItsTimeOutOfTheSteps) {
  StepRow evaluated = Row(2);
  evaluated.total_us = 1'420'000;
  evaluated.phase_us[kEvaluation] = 1'380'000;
  const StepTimes times = MeasureSteps({WithoutEvaluation({Row(1), evaluated})});
  EXPECT_DOUBLE_EQ(times.max, 0.04);
  EXPECT_EQ(times.phase[kEvaluation], 0);
  EXPECT_EQ(kPhaseNames[kEvaluation], "eval");
}

TEST(FindReplays, NamesTheStepsThatRanAgain) {
  const auto spans =
      FindReplays({Row(1), Row(2), Row(3), Row(2, 2), Row(3, 2), Row(4, 2), Row(1, 3), Row(2, 3)});
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].first_step, 2U);
  EXPECT_EQ(spans[0].last_step, 3U);
  EXPECT_EQ(spans[0].generation, 2U);
  EXPECT_EQ(spans[1].last_step, 2U);
}

TEST(LossPoints, KeepASpikeOfOneStepInAHundredThousand) {
  std::vector<StepRow> steps;
  for (std::uint64_t step = 1; step <= 100'000; ++step) steps.push_back(Row(step));
  steps[70'000].loss = 99;
  const auto points = LossPoints(steps);
  EXPECT_LE(points.size(), kMostPoints);
  double highest = 0;
  for (const LossPoint& point : points) highest = std::max(highest, point.max);
  EXPECT_EQ(highest, 99);
  EXPECT_EQ(points.front().first_step, 1U);
  EXPECT_EQ(points.back().last_step, 100'000U);
  EXPECT_NEAR(points.front().smooth, 1, 1e-9);
}

TEST(LossPoints, LeaveOutWhatIsNotFinite) {
  EXPECT_TRUE(LossPoints({}).empty());
  EXPECT_TRUE(LossPoints({Row(1, 1, NAN)}).empty());
  const auto points = LossPoints({Row(1), Row(2, 1, NAN), Row(3)});
  EXPECT_EQ(points.size(), 2U);
}

TEST(LossPoints, TakeStepNumbersThatLieFarApart) {
  const auto points = LossPoints({Row(1), Row(std::uint64_t{1} << 62)});
  EXPECT_EQ(points.size(), 2U);
}

TEST(MeasureSteps, FindsMedianAndTailOverAllRanks) {
  std::vector<std::vector<StepRow>> ranks(2);
  for (std::uint64_t step = 1; step <= 100; ++step) {
    for (auto& steps : ranks) {
      steps.push_back(Row(step));
      steps.back().total_us = step == 100 ? 90'000 : 1000;
      steps.back().phase_us = {0, 600, 400};
    }
  }
  const StepTimes times = MeasureSteps(ranks);
  EXPECT_EQ(times.samples, 200U);
  EXPECT_DOUBLE_EQ(times.median, 0.001);
  EXPECT_DOUBLE_EQ(times.p95, 0.001);
  EXPECT_DOUBLE_EQ(times.max, 0.09);
  EXPECT_NEAR(times.phase[1], 0.0006, 1e-12);
  EXPECT_EQ(times.points.size(), 100U);
  EXPECT_EQ(times.points.back().last_step, 100U);
  EXPECT_EQ(MeasureSteps({}).samples, 0U);
  EXPECT_EQ(MeasureSteps({{}, {}}).samples, 0U);
}

}  // namespace
}  // namespace muster::profile
