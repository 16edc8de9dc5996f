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
  // Steps 6 to 10: what generation 1 had done beyond 7 was undone by it, too.
  EXPECT_NEAR(faults[1].lost.replay, 0.500, 1e-9);
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
  EXPECT_FALSE(faults[0].recovered());
  EXPECT_TRUE(faults[0].survived()) << "the run went on";
  EXPECT_EQ(faults[0].lost.replay, 0);
}

TEST(MeasureFaults, KnowsOnlyTheMostThatAProgramWithoutStepsLost) {
  Story story;
  story.Start(0, 1);
  story.Die(1100, 1, 0);
  story.Start(1150, 2);
  story.Die(9000, 2, 0);
  story.Start(9040, 3);
  for (EventRecord& event : story.run().events) event.step.reset();
  const auto faults = MeasureFaults(story.run());
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_NEAR(faults[0].lost.start, 0.020, 1e-9);
  EXPECT_EQ(faults[0].recovery(), std::nullopt);
  EXPECT_FALSE(faults[0].lost.exact());
  EXPECT_NEAR(faults[0].lost.at_most(), 1.150, 1e-9);  // from 0 to 1150 ms
  EXPECT_NEAR(faults[1].lost.at_most(), 7.890, 1e-9);  // from 1150 to 9040 ms
}

TEST(MeasureFaults, WhoWouldPublishStepsAndDiedBeforeTheFirstLostNoWork) {
  Story story;
  story.Start(0, 1);
  story.Die(1100, 1, 0);
  for (EventRecord& event : story.run().events) {
    if (event.event == "fault") event.step = 0;
  }
  story.Start(1150, 2);
  story.run().result = RunResult{.state = "FAILED", .ended_ns = 1500 * kMillisecond};
  const auto faults = MeasureFaults(story.run());
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_TRUE(faults[0].lost.exact());
  EXPECT_NEAR(faults[0].lost.total(), 0.400, 1e-9);
  EXPECT_EQ(faults[0].step, 0U);
}

TEST(MeasureFaults, EndsAReplayWithTheRun) {
  Story story;
  story.Start(0, 1);
  story.Steps(100, 1, 1, 10);
  story.Die(1100, 1, 10);
  story.Start(1130, 2);
  story.Steps(1200, 2, 1, 2);
  story.run().result = RunResult{.state = "FAILED", .ended_ns = 1500 * kMillisecond};
  const auto faults = MeasureFaults(story.run());
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_NEAR(faults[0].lost.replay, 0.300, 1e-9);
  EXPECT_NEAR(faults[0].recovery().value_or(0), 0.100, 1e-9);
}

TEST(MeasureFaults, WhoHadNoStepLeftIsBackWhenAllWorkersRun) {
  for (const bool in_place : {false, true}) {
    for (const char* state : {"SUCCEEDED", "FAILED"}) {
      Story story;
      story.run().facts.ranks = 2;
      story.Start(0, 1);
      story.Steps(100, 1, 1, 10);
      story.Die(1100, 1, 10);
      if (in_place) {
        story.run().events.back().event = "ranks_quiesced";
        story.run().events.back().kept = 1;
      } else {
        story.Event(1180, "worker_started", 2);
      }
      story.Start(1190, 2);
      story.run().result = RunResult{.state = state, .ended_ns = 5000 * kMillisecond};
      const auto faults = MeasureFaults(story.run());
      ASSERT_EQ(faults.size(), 1U);
      const bool succeeded = std::string_view(state) == "SUCCEEDED";
      EXPECT_EQ(faults[0].no_step_left, succeeded);
      EXPECT_EQ(faults[0].recovered(), succeeded);
      EXPECT_NEAR(faults[0].recovery().value_or(0), succeeded ? 0.090 : 0, 1e-9);
      EXPECT_NEAR(faults[0].lost.at_most(), succeeded ? 0.090 : 3.900, 1e-9);
      EXPECT_NEAR(faults[0].restarted.value_or(0), 1.190, 1e-9);
    }
  }
}

TEST(BuildReport, CountsStepsThatASecondFaultUndidAsLostAndNotAsBetweenSteps) {
  Story story = DiesAgainInReplay();
  const RunReport report = BuildReport(std::move(story.run()));
  EXPECT_NEAR(report.budget.startup, 0.100, 1e-9);
  EXPECT_NEAR(report.budget.training, 1.200, 1e-9);  // 1 to 10, then 11 and 12
  EXPECT_NEAR(report.budget.lost, 1.000, 1e-9);      // 1100 → 2100
  EXPECT_NEAR(report.budget.other, 0, 1e-9);
  EXPECT_NEAR(report.budget.startup + report.budget.training + report.budget.lost, report.wall,
              1e-9);
}

TEST(BuildReport, NeverCountsASecondTwice) {
  Story story;
  story.Start(0, 1);
  story.Die(500, 1, 0);  // in its start-up
  story.Start(530, 2);
  story.Steps(900, 2, 1, 5);
  story.Die(1400, 2, 5);  // and nobody starts it again
  story.run().result = RunResult{.state = "FAILED", .ended_ns = 1600 * kMillisecond};
  const RunReport report = BuildReport(std::move(story.run()));
  EXPECT_NEAR(report.budget.lost, 0.430, 1e-9);  // 500 → 900, 1400 → 1430
  EXPECT_NEAR(report.budget.startup, 0.500, 1e-9);
  EXPECT_NEAR(report.budget.training, 0.500, 1e-9);
  EXPECT_NEAR(report.budget.ending, 0.170, 1e-9);
  EXPECT_NEAR(report.budget.other, 0, 1e-9);
}

TEST(BuildReport, AgreesWithTheAgentsSumsOfARunThatDiesAgainInReplay) {
  Story story = DiesAgainInReplay();
  // What agent/run/accounting.cc makes of the same times.
  story.run().result = RunResult{
      .state = "SUCCEEDED",
      .lost = LostSeconds{.detect = 0.020, .stop = 0.040, .start = 0.190, .replay = 0.750}};
  const RunReport report = BuildReport(std::move(story.run()));
  EXPECT_NEAR(report.lost.total(), 1.000, 1e-9);
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
