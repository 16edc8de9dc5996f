#include "agent/coordinator/step_times.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(StepTimes, KnowNothingBeforeEightSteps) {
  StepTimes times;
  EXPECT_EQ(times.Slowest(), seconds(0));
  for (std::uint64_t step = 1; step < 8; ++step) {
    // Four ranks, and still one step.
    for (int rank = 0; rank < 4; ++rank) times.Add(step, seconds(1));
    EXPECT_FALSE(times.Limit());
  }
  times.Add(8, seconds(1));
  EXPECT_EQ(times.Limit(), seconds(3));
}

TEST(StepTimes, TakeTheSlowestRankOfAStep) {
  StepTimes times;
  for (std::uint64_t step = 1; step <= 20; ++step) {
    times.Add(step, milliseconds(100));
    times.Add(step, milliseconds(400));
    times.Add(step, milliseconds(200));
  }
  EXPECT_EQ(times.Slowest(), milliseconds(400));
  EXPECT_EQ(times.Limit(), milliseconds(1200));
}

TEST(StepTimes, AreNotRaisedThreefoldByAPause) {
  StepTimes times;
  for (std::uint64_t step = 1; step <= 200; ++step) {
    times.Add(step, step == 150 || step == 190 ? milliseconds(1500) : milliseconds(5));
  }
  EXPECT_EQ(times.Slowest(), milliseconds(1500));
  EXPECT_EQ(times.Limit(), milliseconds(1875));
}

TEST(StepTimes, RememberStepsThatAreSlowByPlan) {
  StepTimes times;
  for (std::uint64_t step = 1; step <= 950; ++step) {
    times.Add(step, step % 500 == 0 ? seconds(40) : seconds(1));
  }
  EXPECT_EQ(times.Limit(), seconds(50));
}

TEST(StepTimes, FollowAJobThatBecameSlowerOrFaster) {
  StepTimes times;
  for (std::uint64_t step = 1; step <= 100; ++step) times.Add(step, seconds(1));
  for (std::uint64_t step = 101; step <= 103; ++step) times.Add(step, milliseconds(2500));
  EXPECT_EQ(times.Limit(), milliseconds(7500));
  for (std::uint64_t step = 104; step <= 104 + 1024; ++step) times.Add(step, milliseconds(100));
  EXPECT_EQ(times.Limit(), milliseconds(300));
}

TEST(StepTimes, GoBackWithARestart) {
  StepTimes times;
  for (std::uint64_t step = 1; step <= 500; ++step) times.Add(step, seconds(1));
  // From the checkpoint at 300, on a machine that is slower now.
  for (std::uint64_t step = 301; step <= 320; ++step) times.Add(step, seconds(2));
  EXPECT_EQ(times.Slowest(), seconds(2));
  EXPECT_EQ(times.Limit(), seconds(6));
}

}  // namespace
}  // namespace muster::agent
