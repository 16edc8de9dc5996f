#include "agent/coordinator/hang_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using os::Phase;
using os::ProcessState;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// Three ranks that a test puts into phases, looked at every 100 ms.
class HangWatchTest : public testing::Test {
 protected:
  HangWatchTest() : ranks_(3), processes_(3) {
    for (auto& rank : ranks_) rank.alive = true;
    for (std::uint64_t i = 1; i <= 64; ++i) watch_.Stepped(i, milliseconds(40));
    for (std::uint32_t i = 0; i < 3; ++i) Put(i, Phase::kForward);
  }
  void Put(std::uint32_t rank, Phase phase) {
    ranks_[rank].pulse.phase = phase;
    ranks_[rank].pulse.phase_since = now_;
  }
  /// The first hang that is seen within `time`, and when.
  std::optional<Hang> Wait(nanoseconds time) {
    const Instant end = now_ + time;
    while (now_ < end) {
      now_ += milliseconds(100);
      for (auto& process : processes_) process.cpu_ticks += computes_ ? 1 : 0;
      for (std::size_t i = 0; i < 3; ++i) ranks_[i].process = processes_[i];
      if (auto hang = watch_.Look(ranks_, now_)) return hang;
    }
    return std::nullopt;
  }
  /// Ranks 0 and 2 wait in a collective for rank 1.
  void LetTheOthersWait() {
    Put(0, Phase::kComm);
    Put(2, Phase::kComm);
  }

  HangWatch watch_{3};
  std::vector<RankSight> ranks_;
  std::vector<os::ProcessSight> processes_;
  Instant now_{std::chrono::hours(5)};
  bool computes_ = true;
};

TEST_F(HangWatchTest, BlamesTheRankThatDoesNotComeAndNotThoseThatWait) {
  LetTheOthersWait();
  const Instant begin = now_;
  const auto hang = Wait(seconds(10));
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, Rank(1));
  EXPECT_THAT(hang->what, testing::StartsWith("in forward for 1."));
  EXPECT_LE(now_ - begin, seconds(2));
  EXPECT_FALSE(Wait(seconds(60))) << "the same is said once";
}

TEST_F(HangWatchTest, LeavesAPauseOfOneAndAHalfSecondsAlone) {
  for (int turn = 0; turn < 50; ++turn) {
    LetTheOthersWait();
    Put(1, Phase::kData);
    ASSERT_FALSE(Wait(milliseconds(1600)));
    for (std::uint32_t i = 0; i < 3; ++i) ++ranks_[i].pulse.step;
  }
}

TEST_F(HangWatchTest, GivesSlowStepsThreeTimesTheirTime) {
  for (std::uint64_t i = 65; i <= 128; ++i) watch_.Stepped(i, seconds(10));
  LetTheOthersWait();
  EXPECT_FALSE(Wait(seconds(27)));
  EXPECT_TRUE(Wait(seconds(3)));
}

TEST_F(HangWatchTest, DoesNotJudgeBeforeItKnowsHowLongAStepTakes) {
  watch_ = HangWatch(3);
  for (std::uint64_t i = 1; i <= 7; ++i) watch_.Stepped(i, milliseconds(40));
  LetTheOthersWait();
  EXPECT_FALSE(Wait(seconds(27)));
  EXPECT_TRUE(Wait(seconds(3)));
}

TEST_F(HangWatchTest, FindsTheStoppedOneAmongThoseThatWait) {
  for (std::uint32_t i = 0; i < 3; ++i) Put(i, Phase::kComm);
  processes_[2].state = ProcessState::kStopped;
  const auto hang = Wait(seconds(3));
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, Rank(2));
  EXPECT_THAT(hang->what, testing::StartsWith("stopped by a signal for 1."));
}

TEST_F(HangWatchTest, BlamesTheOneThatTheKernelHoldsInACollective) {
  for (std::uint32_t i = 0; i < 3; ++i) Put(i, Phase::kComm);
  processes_[1].state = ProcessState::kUninterrupted;
  EXPECT_FALSE(Wait(seconds(20))) << "it computes now and then";
  computes_ = false;
  const auto hang = Wait(seconds(6));
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, Rank(1));
  EXPECT_THAT(hang->what, testing::StartsWith("in comm, waiting in the kernel (state D), for 4."));
}

TEST_F(HangWatchTest, EndsACollectiveThatNobodyLeaves) {
  for (std::uint32_t i = 0; i < 3; ++i) {
    Put(i, Phase::kComm);
    ranks_[i].pulse.collective = i == 1 ? 7 : 8;
  }
  EXPECT_FALSE(Wait(seconds(26)));
  const auto hang = Wait(seconds(4));
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, Rank(1)) << "the others are in the next one";
  EXPECT_THAT(hang->what, testing::EndsWith("as all ranks are"));
  EXPECT_FALSE(Wait(seconds(60))) << "the same is said once";
}

TEST_F(HangWatchTest, WaitsForWhoHasNotComeToACollectiveYet) {
  for (std::uint32_t i = 0; i < 3; ++i) Put(i, Phase::kComm);
  ranks_[2].alive = false;  // it starts, or has finished
  EXPECT_FALSE(Wait(std::chrono::minutes(10)));
}

TEST_F(HangWatchTest, LeavesWhatADebuggerHasAloneAndWhoeverWaitsForIt) {
  LetTheOthersWait();
  processes_[1].state = ProcessState::kTraced;
  EXPECT_FALSE(Wait(std::chrono::minutes(10)));
  processes_[1].state = ProcessState::kSleeping;
  EXPECT_TRUE(Wait(seconds(1)));
}

TEST_F(HangWatchTest, LetsASaveTakeItsTimeWhileItWorks) {
  for (std::uint32_t i = 0; i < 3; ++i) Put(i, Phase::kCheckpoint);
  EXPECT_FALSE(Wait(std::chrono::minutes(10)));
  computes_ = false;
  for (auto& process : processes_) process.state = ProcessState::kUninterrupted;
  EXPECT_FALSE(Wait(std::chrono::minutes(10))) << "a slow disk";
  for (auto& process : processes_) process.state = ProcessState::kSleeping;
  EXPECT_FALSE(Wait(seconds(53)));
  EXPECT_TRUE(Wait(seconds(4)));
}

TEST_F(HangWatchTest, CountsOnlyTimeInWhichItLooked) {
  LetTheOthersWait();
  EXPECT_FALSE(Wait(seconds(1)));
  now_ += std::chrono::hours(1);  // we were stopped, or the machine slept
  EXPECT_FALSE(Wait(milliseconds(500)));
  EXPECT_TRUE(Wait(milliseconds(500)));
}

TEST_F(HangWatchTest, SaysNothingOfTheDeadAndOfThoseThatAreNotOurs) {
  LetTheOthersWait();
  processes_[1].state = ProcessState::kDead;
  EXPECT_FALSE(Wait(seconds(60)));
  processes_[1].state = ProcessState::kSleeping;
  ranks_[1].alive = false;
  EXPECT_FALSE(Wait(seconds(60)));
}

TEST_F(HangWatchTest, ForgetsWhatWasBeforeAPause) {
  LetTheOthersWait();
  EXPECT_FALSE(Wait(milliseconds(1700)));
  watch_.Restart();
  EXPECT_FALSE(Wait(milliseconds(1700)));
  EXPECT_TRUE(Wait(milliseconds(500)));
}

}  // namespace
}  // namespace muster::agent
