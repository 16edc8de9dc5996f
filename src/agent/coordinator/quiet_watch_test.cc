#include "agent/coordinator/quiet_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

/// Three ranks, looked at every second, that do what a test says.
class QuietWatchTest : public testing::Test {
 protected:
  QuietWatchTest() : ranks_(3), computes_(3), writes_(3), processes_(3), io_(3) {
    for (RankStatus& rank : ranks_) rank.state = RankState::kRunning;
  }
  /// What is said first within `time`.
  std::optional<Quiet> Wait(nanoseconds time) {
    const Instant end = now_ + time;
    while (now_ < end) {
      now_ += seconds(1);
      for (std::uint32_t i = 0; i < 3; ++i) {
        processes_[i].cpu_ticks += computes_[i] ? 90 : 0;
        io_[i] += writes_[i] ? 10 : 0;
        if (ranks_[i].state == RankState::kRunning)
          watch_.See(Rank(i), processes_[i], io_[i], now_);
      }
      if (auto quiet = watch_.Look(ranks_, now_)) return quiet;
    }
    return std::nullopt;
  }
  void Limit(nanoseconds limit) { watch_ = QuietWatch(3, limit); }

  QuietWatch watch_{3, std::nullopt};
  std::vector<RankStatus> ranks_;
  std::vector<bool> computes_, writes_;
  std::vector<os::ProcessSight> processes_;
  std::vector<std::uint64_t> io_;
  Instant now_{std::chrono::hours(5)};
};

TEST_F(QuietWatchTest, TellsOfWhoIsLeftWhenTheOthersFinished) {
  computes_ = {true, true, true};
  ASSERT_FALSE(Wait(minutes(1)));
  computes_[1] = false;
  ranks_[0].state = ranks_[2].state = RankState::kFinished;
  const Instant begin = now_;
  const auto quiet = Wait(minutes(1));
  ASSERT_TRUE(quiet);
  EXPECT_THAT(quiet->ranks, testing::ElementsAre(Rank(1)));
  EXPECT_FALSE(quiet->acts);
  EXPECT_THAT(quiet->what, testing::StartsWith("rank 1 stands still for 30"));
  EXPECT_THAT(quiet->what, testing::EndsWith("ranks 0, 2 finished"));
  EXPECT_LE(now_ - begin, seconds(32));
  EXPECT_FALSE(Wait(minutes(60))) << "the same is said once";
}

TEST_F(QuietWatchTest, TellsOfRanksThatAllStandStill) {
  EXPECT_FALSE(Wait(minutes(4)));
  const auto quiet = Wait(minutes(2));
  ASSERT_TRUE(quiet);
  EXPECT_THAT(quiet->what, testing::StartsWith("ranks 0-2 stand still for 5"));
}

TEST_F(QuietWatchTest, NamesWhoIsStoppedAmongThoseThatWaitForIt) {
  processes_[1].state = os::ProcessState::kStopped;
  const auto quiet = Wait(minutes(6));
  ASSERT_TRUE(quiet);
  EXPECT_EQ(quiet->held, Rank(1));
  EXPECT_THAT(quiet->what, testing::EndsWith("; rank 1 is stopped by a signal"));
}

TEST_F(QuietWatchTest, NamesWhoTheKernelHoldsAllTheTime) {
  processes_[0].state = os::ProcessState::kUninterrupted;
  ASSERT_FALSE(Wait(minutes(1)));
  processes_[0].state = os::ProcessState::kSleeping;
  ASSERT_FALSE(Wait(seconds(5)));
  processes_[2].state = os::ProcessState::kUninterrupted;
  const auto quiet = Wait(minutes(6));
  ASSERT_TRUE(quiet);
  EXPECT_EQ(quiet->held, Rank(2)) << "rank 0 was held for a moment";
  EXPECT_THAT(quiet->what, testing::EndsWith("; rank 2 waits in the kernel (state D)"));
}

TEST_F(QuietWatchTest, TellsOfOneThatTurnsWhileTheOthersWait) {
  computes_[2] = true;
  EXPECT_FALSE(Wait(minutes(9)));
  const auto quiet = Wait(minutes(2));
  ASSERT_TRUE(quiet);
  EXPECT_THAT(quiet->what, testing::HasSubstr("ranks 0-1 stand still"));
  EXPECT_THAT(quiet->what, testing::HasSubstr("while rank 2 computes"));
}

TEST_F(QuietWatchTest, LeavesThoseAloneThatWorkOrWrite) {
  computes_ = {true, true, true};
  EXPECT_FALSE(Wait(minutes(60)));
  computes_ = {false, false, false};
  writes_[0] = true;
  EXPECT_FALSE(Wait(minutes(60)));
}

TEST_F(QuietWatchTest, ActsAtTheUsersLimitAndTellsBefore) {
  Limit(minutes(6));
  auto quiet = Wait(minutes(10));
  ASSERT_TRUE(quiet);
  EXPECT_FALSE(quiet->acts);
  quiet = Wait(minutes(10));
  ASSERT_TRUE(quiet);
  EXPECT_TRUE(quiet->acts);
  EXPECT_FALSE(Wait(minutes(60)));
}

TEST_F(QuietWatchTest, ActsAtOnceWhereTheLimitIsShort) {
  Limit(seconds(10));
  const auto quiet = Wait(seconds(13));
  ASSERT_TRUE(quiet);
  EXPECT_TRUE(quiet->acts);
}

TEST_F(QuietWatchTest, BeginsAnewWhenSomethingMoved) {
  EXPECT_FALSE(Wait(minutes(4)));
  io_[1] += 1;
  EXPECT_FALSE(Wait(minutes(4)));
  EXPECT_TRUE(Wait(minutes(2)));
  io_[1] += 1;
  EXPECT_TRUE(Wait(minutes(6))) << "another standstill";
}

TEST_F(QuietWatchTest, DoesNotCountTimeInWhichNobodyLooked) {
  EXPECT_FALSE(Wait(seconds(10)));
  now_ += minutes(60);
  EXPECT_FALSE(Wait(minutes(4)));
}

TEST_F(QuietWatchTest, LeavesWhatADebuggerHasAlone) {
  processes_[0].state = os::ProcessState::kTraced;
  EXPECT_FALSE(Wait(minutes(60)));
}

TEST_F(QuietWatchTest, JudgesNobodyWhereARankPublishes) {
  // Of a rank with a heartbeat nothing is seen here.
  Instant now = now_;
  for (int i = 0; i < 1000; ++i) {
    now += seconds(1);
    watch_.See(Rank(0), processes_[0], 0, now);
    watch_.See(Rank(1), processes_[1], 0, now);
    EXPECT_FALSE(watch_.Look(ranks_, now));
  }
}

}  // namespace
}  // namespace muster::agent
