#include "agent/run/accounting.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

Instant At(double ms) {
  return Instant(std::chrono::nanoseconds(static_cast<std::int64_t>(ms * 1e6)));
}

os::StepRecord Step(std::uint64_t step, std::uint32_t generation, double begin_ms) {
  os::StepRecord record;
  record.step = step;
  record.generation = generation;
  record.begin_ns = At(begin_ms).time_since_epoch().count();
  record.total_us = 10'000;
  return record;
}

/// Steps of 10 ms of one rank, from `ms` on.
void Train(Accounting& accounting, std::uint32_t generation, std::uint64_t first,
           std::uint64_t last, double ms, Rank rank = Rank(0)) {
  for (std::uint64_t step = first; step <= last; ++step, ms += 10) {
    accounting.Stepped(rank, Step(step, generation, ms));
  }
}

/// Dies at `ms`, is seen 20 ms later and cleared away in 10 ms more; the next generation begins.
void Die(Accounting& accounting, double ms, std::optional<std::uint64_t> step,
         Rank rank = Rank(0)) {
  accounting.FaultStruck(At(ms), rank, step);
  accounting.Paused(At(ms + 20));
  accounting.WorkersStopped(At(ms + 30));
  accounting.Began(At(ms + 30));
}

TEST(Accounting, SplitsTheCostOfAFault) {
  Accounting accounting(2);
  for (std::uint32_t rank : {0U, 1U}) Train(accounting, 1, 1, 5, 1010, Rank(rank));
  Die(accounting, 1065, 5);
  EXPECT_FALSE(accounting.AllStepped(Generation(2)));
  // Both resume behind step 3; rank 1 begins later and ends step 5 at 1225.
  for (std::uint64_t step = 4; step <= 6; ++step) {
    const double at = 1200 + 10.0 * static_cast<double>(step - 4);
    accounting.Stepped(Rank(0), Step(step, 2, at));
    accounting.Stepped(Rank(1), Step(step, 2, at + 5));
  }
  EXPECT_TRUE(accounting.AllStepped(Generation(2)));
  const LostSeconds lost = accounting.lost();
  EXPECT_NEAR(lost.detect, 0.020, 1e-9);
  EXPECT_NEAR(lost.stop, 0.010, 1e-9);
  EXPECT_NEAR(lost.start, 0.110, 1e-9);   // 1095 → 1205
  EXPECT_NEAR(lost.replay, 0.020, 1e-9);  // 1205 → 1225
  EXPECT_TRUE(lost.exact());
  // Six new steps of 10 ms from 1010 to 1230.
  EXPECT_NEAR(*accounting.Goodput(), 60.0 / 220.0, 1e-9);
}

TEST(Accounting, RecoveryEndsWhenEveryRankBeginsAStepAndLostWhenAllIsDoneAgain) {
  Accounting accounting(2);
  for (std::uint32_t rank : {0U, 1U}) Train(accounting, 1, 1, 5, 1010, Rank(rank));
  Die(accounting, 1065, 5);
  for (std::uint32_t rank : {0U, 1U}) Train(accounting, 2, 4, 4, 1200 + 5.0 * rank, Rank(rank));
  const auto recovery = accounting.TakeRecovery();
  ASSERT_TRUE(recovery.has_value());
  EXPECT_EQ(recovery->resume_step, 3U);
  EXPECT_NEAR(recovery->lost.recovery(), 0.140, 1e-9);  // 1065 → 1205, not to the step's end
  EXPECT_FALSE(accounting.TakeRecovery().has_value());
  EXPECT_FALSE(accounting.TakeReplay().has_value());
  for (std::uint32_t rank : {0U, 1U}) Train(accounting, 2, 5, 5, 1210 + 5.0 * rank, Rank(rank));
  const auto replay = accounting.TakeReplay();
  ASSERT_TRUE(replay.has_value());
  EXPECT_EQ(replay->step, 5U);
  EXPECT_NEAR(replay->lost.at_most(), 0.160, 1e-9);
}

TEST(Accounting, AFaultDuringARecoveryClosesIt) {
  Accounting accounting(1);
  Train(accounting, 1, 9, 9, 100);
  Die(accounting, 200, 9);
  accounting.FaultStruck(At(300), Rank(0), 0);
  EXPECT_NEAR(accounting.lost().start, 0.070, 1e-9);
  EXPECT_EQ(accounting.lost().replay, 0);
}

TEST(Accounting, AReplayGoesOnToTheFurthestStepThatWasDoneWhereverTheNextFaultStrikes) {
  Accounting accounting(1);
  Train(accounting, 1, 1, 10, 100);
  Die(accounting, 210, 10);
  Train(accounting, 2, 6, 7, 300);
  Die(accounting, 325, 7);
  Train(accounting, 3, 6, 12, 400);
  // 300 → 325, then 400 → 450: steps 8 to 10 had been done by the first generation.
  EXPECT_NEAR(accounting.lost().replay, 0.075, 1e-9);
}

TEST(Accounting, WhatAProgramWithoutStepsLostIsKnownOnlyAsAMost) {
  Accounting accounting(2);
  accounting.Began(At(1000));
  Die(accounting, 101'000, std::nullopt);
  accounting.Restarted(At(101'090), false);
  const auto recovery = accounting.TakeRecovery();
  ASSERT_TRUE(recovery.has_value());
  EXPECT_FALSE(recovery->lost.exact());
  EXPECT_NEAR(recovery->lost.recovery(), 0.090, 1e-9);
  EXPECT_NEAR(recovery->lost.at_most(), 100.090, 1e-9);
  accounting.Ended(At(150'000), false);
  EXPECT_FALSE(accounting.lost().exact());
  EXPECT_NEAR(accounting.lost().at_most(), 100.090, 1e-9);
  EXPECT_NEAR(accounting.lost().start, 0.060, 1e-9);
}

TEST(Accounting, WhoWouldPublishStepsAndDiedBeforeTheFirstLostNoWork) {
  Accounting accounting(1);
  accounting.Began(At(0));
  accounting.FaultStruck(At(5000), Rank(0), std::nullopt);
  accounting.Paused(At(5020));
  accounting.FaultStruck(At(5100), Rank(0), 0);
  accounting.Paused(At(5120));
  accounting.Ended(At(5200), false);
  EXPECT_TRUE(accounting.lost().exact());
  EXPECT_NEAR(accounting.lost().total(), 0.040, 1e-9);
}

TEST(Accounting, KnowsThatAFaultStruckBeforeGoodputCounts) {
  for (const bool early : {true, false}) {
    Accounting accounting(1);
    if (!early) Train(accounting, 1, 1, 3, 100);
    Die(accounting, 200, early ? 0 : 3);
    Train(accounting, 2, early ? 1 : 4, 6, 300);
    EXPECT_EQ(accounting.StruckEarly(), early);
  }
}

TEST(Accounting, WhoDiesBeforeItsFirstStepLostNoStep) {
  Accounting accounting(1);
  accounting.Began(At(0));
  Die(accounting, 5000, 0);
  accounting.Restarted(At(5040), false);
  Train(accounting, 2, 1, 3, 6000);
  accounting.Ended(At(7000), false);
  EXPECT_TRUE(accounting.lost().exact());
  EXPECT_NEAR(accounting.lost().start, 0.970, 1e-9);  // until it began a step
  EXPECT_EQ(accounting.lost().replay, 0);
}

TEST(Accounting, AReplayThatTheEndCutsShortIsLostToo) {
  Accounting accounting(1);
  Train(accounting, 1, 1, 10, 100);
  Die(accounting, 210, 10);
  Train(accounting, 2, 1, 2, 300);
  accounting.Ended(At(330), false);
  EXPECT_NEAR(accounting.lost().replay, 0.030, 1e-9);
}

TEST(Accounting, WhoHadNoStepLeftIsBackWhenAllWorkersRun) {
  for (const bool succeeded : {true, false}) {
    Accounting accounting(1);
    Train(accounting, 1, 1, 10, 100);
    Die(accounting, 210, 10);
    accounting.Restarted(At(280), true);
    EXPECT_FALSE(accounting.TakeRecovery().has_value()) << "a step may follow";
    accounting.Ended(At(900), succeeded);  // an evaluation, say
    const auto recovery = accounting.TakeRecovery();
    ASSERT_EQ(recovery.has_value(), succeeded);
    EXPECT_TRUE(accounting.lost().exact());
    EXPECT_NEAR(accounting.lost().start, succeeded ? 0.040 : 0.660, 1e-9);
    EXPECT_EQ(accounting.lost().replay, 0);
    if (!succeeded) continue;
    EXPECT_TRUE(recovery->no_step_left);
    EXPECT_NEAR(recovery->lost.recovery(), 0.070, 1e-9);
  }
}

TEST(Accounting, AFaultThatEndsTheRunHasNoStart) {
  Accounting accounting(1);
  Train(accounting, 1, 1, 10, 100);
  accounting.FaultStruck(At(210), Rank(0), 10);
  accounting.Paused(At(230));
  accounting.WorkersStopped(At(240));
  accounting.Ended(At(1000), false);
  EXPECT_NEAR(accounting.lost().at_most(), 0.030, 1e-9);
}

}  // namespace
}  // namespace muster::agent
