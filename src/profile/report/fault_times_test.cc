#include "profile/report/fault_times.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::profile {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

/// A run of one rank, told in milliseconds.
class Story {
 public:
  Story() {
    run_.facts.ranks = 1;
    run_.steps.resize(1);
  }
  void Event(std::int64_t ms, std::string name, std::uint64_t generation) {
    run_.events.push_back(
        {.t_ns = ms * kMillisecond, .event = std::move(name), .generation = generation, .rank = 0});
  }
  /// Dies at `ms`, is seen 10 ms later and cleared away in 20 ms more.
  void Die(std::int64_t ms, std::uint64_t generation, std::uint64_t step) {
    Event(ms + 5, "fault", generation);
    run_.events.back().died_ns = ms * kMillisecond;
    run_.events.back().step = step;
    Event(ms + 10, "pause", generation);
    Event(ms + 30, "workers_stopped", generation);
  }
  void Start(std::int64_t ms, std::uint64_t generation) {
    Event(ms, "generation_started", generation);
    Event(ms, "worker_started", generation);
  }
  /// Steps of 100 ms from `ms` on.
  void Steps(std::int64_t ms, std::uint64_t generation, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t step = first; step <= last; ++step, ms += 100) {
      run_.steps[0].push_back({.step = step,
                               .generation = generation,
                               .begin_ns = ms * kMillisecond,
                               .total_us = 100'000});
    }
  }
  RunRecords& run() { return run_; }

 private:
  RunRecords run_;
};

/// Dies at step 10 of 5 saved ones; again at step 7, while that is made up for; then goes through.
Story DiesAgainInReplay() {
  Story story;
  story.Start(0, 1);
  story.Steps(100, 1, 1, 10);
  story.Die(1100, 1, 10);
  story.Start(1130, 2);
  story.Steps(1200, 2, 6, 7);
  story.Die(1450, 2, 7);
  story.Start(1480, 3);
  story.Steps(1600, 3, 6, 12);
  return story;
}

TEST(MeasureFaults, ClosesAReplayThatTheNextFaultCutsShort) {
  Story story = DiesAgainInReplay();
  const auto faults = MeasureFaults(story.run());
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_NEAR(faults[0].lost.start, 0.070, 1e-9);
  EXPECT_NEAR(faults[0].lost.replay, 0.250, 1e-9);  // from 1200 ms to the next death
  EXPECT_EQ(faults[0].caught_up, std::nullopt);
  EXPECT_NEAR(faults[0].cut.value_or(0), 1.450, 1e-9);
  EXPECT_NEAR(faults[1].lost.replay, 0.200, 1e-9);  // steps 6 and 7
  EXPECT_EQ(faults[1].cut, std::nullopt);
}

TEST(MeasureFaults, ClosesAStartThatTheNextFaultCutsShort) {
  Story story;
  story.Start(0, 1);
  story.Steps(100, 1, 1, 10);
  story.Die(1100, 1, 10);
  story.Start(1130, 2);
  story.Die(1530, 2, 0);  // before its first step
  story.Start(1560, 3);
  story.Steps(1600, 3, 6, 12);
  const auto faults = MeasureFaults(story.run());
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_NEAR(faults[0].lost.start, 0.400, 1e-9);
  EXPECT_FALSE(faults[0].survived());
  EXPECT_EQ(faults[0].lost.replay, 0);
}

TEST(MeasureFaults, FindsNothingToReplayInAProgramWithoutSteps) {
  Story story;
  story.Start(0, 1);
  story.Die(1100, 1, 0);
  story.Start(1150, 2);
  story.Die(9000, 2, 0);
  story.Start(9040, 3);
  const auto faults = MeasureFaults(story.run());
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_NEAR(faults[0].lost.start, 0.020, 1e-9);
  EXPECT_EQ(faults[0].lost.replay, 0);
}

TEST(BuildReport, AgreesWithTheAgentsSumsOfARunThatDiesAgainInReplay) {
  Story story = DiesAgainInReplay();
  // What agent/run/accounting.cc makes of the same times.
  story.run().result = RunResult{
      .state = "SUCCEEDED",
      .lost = LostSeconds{.detect = 0.020, .stop = 0.040, .start = 0.190, .replay = 0.450}};
  const RunReport report = BuildReport(std::move(story.run()));
  EXPECT_NEAR(report.lost.total(), 0.700, 1e-9);
  EXPECT_THAT(report.notes, testing::IsEmpty());
}

TEST(BuildReport, SaysThatItCountsOnlySoManyFaults) {
  Story story;
  for (std::uint64_t generation = 1; generation <= kMostFaults + 1; ++generation) {
    story.Die(static_cast<std::int64_t>(generation) * 100, generation, 0);
  }
  const RunReport report = BuildReport(std::move(story.run()));
  EXPECT_EQ(report.faults.size(), kMostFaults);
  EXPECT_THAT(report.notes, testing::Contains(testing::HasSubstr("only the first 1000 faults")));
}

}  // namespace
}  // namespace muster::profile
