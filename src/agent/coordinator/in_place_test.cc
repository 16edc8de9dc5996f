#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>

#include <csignal>

#include "agent/coordinator/fake_job.h"
#include "base/rng.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Kinds = std::vector<Action::Kind>;

const Ending kKilled{.signal = SIGKILL};

Kinds KindsOf(const std::vector<Action>& orders) {
  Kinds kinds;
  for (const Action& order : orders) kinds.push_back(order.kind);
  return kinds;
}

/// A job whose ranks can all unwind, at step 10.
class InPlace : public testing::Test {
 protected:
  void SetUp() override {
    job_.Begin();
    for (std::uint32_t i = 0; i < 3; ++i) {
      Say(Event::Kind::kCarries, i);
      job_.state.ranks[i].step = 10;
    }
  }
  std::vector<Action> Say(Event::Kind kind, std::uint32_t rank) {
    return job_.Feed(
        {.kind = kind, .rank = Rank(rank), .generation = job_.state.ranks[rank].spawned});
  }
  /// The time in which other faults of the same cause are awaited is over.
  std::vector<Action> Gathered() {
    job_.now += milliseconds(20);
    return job_.Feed({.kind = Event::Kind::kTick});
  }
  void Recover() {
    job_.Exit(1, kKilled);
    Say(Event::Kind::kQuiesced, 0);
    Gathered();
    Say(Event::Kind::kQuiesced, 2);
    Say(Event::Kind::kStarted, 1);
  }
  Job job_{3};
};

TEST_F(InPlace, SurvivorsUnwindAtOnceAndGoOnInTheNextGeneration) {
  EXPECT_EQ(KindsOf(job_.Exit(1, kKilled)), Kinds{Action::Kind::kAbort});
  EXPECT_TRUE(Say(Event::Kind::kQuiesced, 0).empty());
  EXPECT_TRUE(Gathered().empty());
  EXPECT_EQ(job_.state.phase, Phase::kQuiescing);
  EXPECT_THAT(job_.reason, HasSubstr("process restart 1 of 3, in place"));
  const auto orders = Say(Event::Kind::kQuiesced, 2);
  ASSERT_EQ(KindsOf(orders), Kinds{Action::Kind::kStartRanks});
  EXPECT_EQ(orders[0].generation, Generation(2));
  EXPECT_EQ(orders[0].restart, RestartKind::kInPlace);
  EXPECT_EQ(job_.state.ranks[0].state, RankState::kRunning);
  EXPECT_EQ(job_.state.ranks[0].spawned, Generation(1));
  EXPECT_EQ(job_.state.ranks[1].state, RankState::kStarting);
  EXPECT_EQ(job_.state.ranks[1].spawned, Generation(2));
  Say(Event::Kind::kStarted, 1);
  EXPECT_EQ(job_.state.phase, Phase::kRunning);
  EXPECT_EQ(job_.state.process_restarts.size(), 1U) << "it counts against the budget";
}

TEST_F(InPlace, NobodyGoesOnWhenTheRanksAreNumberedAnew) {
  job_.Exit(1, kKilled);
  Say(Event::Kind::kQuiesced, 0);
  Gathered();
  Say(Event::Kind::kQuiesced, 2);
  ASSERT_EQ(job_.state.phase, Phase::kStarting);
  const Generation before = job_.state.ranks[0].spawned;
  job_.Feed({.kind = Event::Kind::kResized, .ranks = 2});
  for (const RankStatus& rank : job_.state.ranks) {
    EXPECT_EQ(rank.state, RankState::kStarting);
    EXPECT_EQ(rank.spawned, job_.state.generation);
  }
  job_.Feed({.kind = Event::Kind::kExited,
             .rank = Rank(0),
             .generation = before,
             .ending = {.signal = SIGTERM}});
  EXPECT_EQ(job_.state.phase, Phase::kStarting) << "it was stopped for that";
  Say(Event::Kind::kStarted, 0);
  Say(Event::Kind::kStarted, 1);
  EXPECT_EQ(job_.state.phase, Phase::kRunning);
}

TEST_F(InPlace, WhenAllWaitAlreadyTheNextTickGoesOn) {
  job_.Exit(1, kKilled);
  Say(Event::Kind::kQuiesced, 0);
  Say(Event::Kind::kQuiesced, 2);
  EXPECT_TRUE(Gathered().empty());
  EXPECT_EQ(job_.state.deadline, job_.now);
  EXPECT_EQ(KindsOf(job_.Feed({.kind = Event::Kind::kTick})), Kinds{Action::Kind::kStartRanks});
  EXPECT_EQ(job_.state.phase, Phase::kStarting) << "nobody is late yet";
  EXPECT_EQ(job_.state.ranks[1].state, RankState::kStarting);
}

TEST_F(InPlace, WhoDiesWhileTheOthersUnwindIsReplacedToo) {
  job_.Exit(1, kKilled);
  Gathered();
  Say(Event::Kind::kQuiesced, 0);
  const auto orders = job_.Exit(2, kKilled);
  ASSERT_EQ(KindsOf(orders), Kinds{Action::Kind::kStartRanks});
  EXPECT_EQ(job_.state.ranks[2].state, RankState::kStarting);
  EXPECT_EQ(job_.state.ranks[0].state, RankState::kRunning);
}

TEST_F(InPlace, ASurvivorThatDoesNotUnwindMakesItARestartOfAll) {
  job_.state.slowest_step = seconds(3);
  job_.Exit(1, kKilled);
  Gathered();
  Say(Event::Kind::kQuiesced, 0);
  job_.now += seconds(9) - milliseconds(1);
  EXPECT_TRUE(job_.Feed({.kind = Event::Kind::kTick}).empty()) << "three of its steps";
  job_.now += milliseconds(1);
  EXPECT_EQ(KindsOf(job_.Feed({.kind = Event::Kind::kTick})), Kinds{Action::Kind::kStop});
  const auto orders = job_.Feed({.kind = Event::Kind::kStopped});
  ASSERT_EQ(KindsOf(orders), Kinds{Action::Kind::kStartRanks});
  EXPECT_EQ(orders[0].restart, RestartKind::kProcesses);
  EXPECT_EQ(job_.state.process_restarts.size(), 1U);
}

TEST_F(InPlace, ASurvivorThatFinishesMakesItARestartOfAll) {
  job_.Exit(1, kKilled);
  Gathered();
  EXPECT_EQ(KindsOf(job_.Exit(2, {})), Kinds{Action::Kind::kStop});
}

TEST_F(InPlace, NobodyIsAbortedWhenSomeoneCannotUnwind) {
  job_.state.ranks[2].carries = false;
  EXPECT_TRUE(job_.Exit(1, kKilled).empty());
  EXPECT_EQ(KindsOf(Gathered()), Kinds{Action::Kind::kStop});
}

TEST_F(InPlace, NobodyIsAbortedWhenRestartsAreOff) {
  job_.policy.process_restarts = job_.policy.full_restarts = 0;
  EXPECT_TRUE(job_.Exit(1, kKilled).empty());
  Gathered();
  EXPECT_EQ(job_.state.phase, Phase::kEnding);
}

TEST_F(InPlace, NobodyIsAbortedWhenTheUserWantsAllToStartAgain) {
  job_.policy.in_place = false;
  EXPECT_TRUE(job_.Exit(1, kKilled).empty());
  EXPECT_EQ(KindsOf(Gathered()), Kinds{Action::Kind::kStop});
}

TEST_F(InPlace, AGenerationThatCrashesBeforeAStepIsNotTriedAgainInPlace) {
  for (const Ending& ending :
       {Ending{.code = 3}, {.signal = SIGSEGV}, {.signal = SIGKILL, .hang = "it loops"}}) {
    job_ = Job(3);
    SetUp();
    Recover();
    EXPECT_TRUE(job_.Exit(1, ending).empty()) << "the survivors' memory may be the cause";
    EXPECT_EQ(KindsOf(Gathered()), Kinds{Action::Kind::kStop});
  }
}

class Crashes : public InPlace {
 protected:
  std::vector<Action> Crash(std::uint32_t rank, std::uint64_t step, const std::string& words) {
    for (RankStatus& status : job_.state.ranks) status.step = std::max(status.step, step);
    job_.state.ranks[rank].step = step;
    return job_.Feed({.kind = Event::Kind::kExited,
                      .rank = Rank(rank),
                      .generation = job_.state.ranks[rank].spawned,
                      .ending = {.code = 1, .time = job_.now},
                      .text = words});
  }
  void AllStartAgain() {
    Gathered();
    job_.Feed({.kind = Event::Kind::kStopped});
    job_.StartAll();
    for (std::uint32_t i = 0; i < 3; ++i) Say(Event::Kind::kCarries, i);
  }
  void ReplaceInPlace(std::uint32_t dead) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      if (i != dead) Say(Event::Kind::kQuiesced, i);
    }
    Gathered();
    job_.Feed({.kind = Event::Kind::kTick});
    Say(Event::Kind::kStarted, dead);
    job_.state.ranks[dead].steps = true;
  }
};

TEST_F(Crashes, AreTheSameForTheSecondTimeWhateverCameToNoStepBetween) {
  job_.policy.process_restarts = 100;
  Crash(1, 13, "poisoned row 5 at 0x7f12");
  ReplaceInPlace(1);
  ASSERT_EQ(job_.state.generation, Generation(2));
  Crash(1, 0, "poisoned row 5 at 0x7f34");  // its memory is a survivor's, the step the same one
  AllStartAgain();
  ASSERT_EQ(job_.state.generation, Generation(3)) << "it may be what they have in memory";
  job_.Exit(2, kKilled);  // before a step
  ReplaceInPlace(2);
  Crash(1, 13, "poisoned row 5 at 0x7f56");
  Gathered();
  EXPECT_EQ(job_.state.phase, Phase::kEnding);
  EXPECT_EQ(job_.state.verdict->exit_code, 1);
  EXPECT_THAT(job_.reason, HasSubstr("the same, at the same step, for the second time"));
}

TEST_F(Crashes, AreForgottenOnceAGenerationComesFurther) {
  for (const std::uint64_t reached : {12U, 13U, 14U}) {
    job_ = Job(3);
    SetUp();
    job_.policy.process_restarts = job_.policy.no_progress_limit = 100;
    job_.policy.in_place = false;
    Crash(1, 13, "poisoned");
    AllStartAgain();
    Crash(2, reached, "something else");
    AllStartAgain();
    Crash(1, 13, "poisoned");
    Gathered();
    EXPECT_EQ(job_.state.phase == Phase::kEnding, reached <= 13) << reached;
  }
}

TEST_F(InPlace, ASecondDeathWhileTheReplacementLoadsIsRecoveredFromInPlaceToo) {
  Recover();
  EXPECT_EQ(KindsOf(job_.Exit(1, kKilled)), Kinds{Action::Kind::kAbort});
  Say(Event::Kind::kQuiesced, 0);
  Gathered();
  const auto orders = Say(Event::Kind::kQuiesced, 2);
  ASSERT_EQ(KindsOf(orders), Kinds{Action::Kind::kStartRanks});
  EXPECT_EQ(orders[0].generation, Generation(3));
  EXPECT_EQ(job_.state.ranks[0].spawned, Generation(1));
  EXPECT_EQ(job_.state.ranks[1].spawned, Generation(3));
  EXPECT_EQ(job_.state.process_restarts.size(), 2U);
  EXPECT_EQ(job_.state.without_progress, 0U) << "it had no time for any, and lost nothing";
  // Once more without a step between, and it may be what they have in memory that kills.
  Say(Event::Kind::kStarted, 1);
  EXPECT_TRUE(job_.Exit(1, kKilled).empty());
  EXPECT_EQ(KindsOf(Gathered()), Kinds{Action::Kind::kStop});
}

TEST_F(InPlace, WhoStillLoadsWhenASurvivorDiesIsKilledAndStartedOnceMore) {
  Recover();
  const auto orders = job_.Exit(0, kKilled);
  ASSERT_EQ(KindsOf(orders), (Kinds{Action::Kind::kAbort, Action::Kind::kKill}));
  EXPECT_EQ(orders[1].rank, Rank(1));
  Say(Event::Kind::kQuiesced, 2);
  Gathered();
  EXPECT_EQ(job_.state.phase, Phase::kQuiescing) << "its end is awaited";
  EXPECT_TRUE(job_.state.fault->others.empty());
  const auto next = job_.Exit(1, kKilled);
  ASSERT_EQ(KindsOf(next), Kinds{Action::Kind::kStartRanks});
  EXPECT_TRUE(job_.state.fault->others.empty()) << "that was us";
  EXPECT_EQ(job_.state.ranks[0].state, RankState::kStarting);
  EXPECT_EQ(job_.state.ranks[1].state, RankState::kStarting);
  EXPECT_FALSE(job_.state.ranks[1].doomed);
  EXPECT_EQ(job_.state.ranks[2].spawned, Generation(1));
}

TEST_F(InPlace, WhoIsForkedBehindASecondDeathIsKilledThen) {
  job_.Exit(1, kKilled);
  Say(Event::Kind::kQuiesced, 0);
  Gathered();
  Say(Event::Kind::kQuiesced, 2);
  job_.Feed({.kind = Event::Kind::kBegun, .generation = Generation(2)});
  EXPECT_EQ(KindsOf(job_.Exit(0, kKilled)), Kinds{Action::Kind::kAbort});
  Say(Event::Kind::kQuiesced, 2);
  Gathered();
  EXPECT_EQ(job_.state.phase, Phase::kQuiescing) << "rank 1 may be forked at any moment";
  EXPECT_EQ(KindsOf(Say(Event::Kind::kStarted, 1)), Kinds{Action::Kind::kKill});
  EXPECT_EQ(KindsOf(job_.Exit(1, kKilled)), Kinds{Action::Kind::kStartRanks});
}

TEST_F(InPlace, ADeathBeforeTheNextGenerationBeganLeavesTheOthersWaiting) {
  job_.Exit(1, kKilled);
  Say(Event::Kind::kQuiesced, 0);
  Gathered();
  Say(Event::Kind::kQuiesced, 2);  // the number of generation 2 is on its way to the disk
  job_.Exit(0, kKilled);
  Gathered();
  const auto orders = job_.Feed({.kind = Event::Kind::kTick});
  ASSERT_EQ(KindsOf(orders), Kinds{Action::Kind::kStartRanks});
  EXPECT_EQ(orders[0].generation, Generation(3));
  EXPECT_EQ(job_.state.ranks[1].spawned, Generation(3));
  EXPECT_EQ(job_.state.ranks[2].spawned, Generation(1));
}

TEST_F(InPlace, AGenerationThatBeginsBehindASecondDeathIsAbortedToo) {
  job_.Exit(1, kKilled);
  Say(Event::Kind::kQuiesced, 0);
  Gathered();
  Say(Event::Kind::kQuiesced, 2);
  job_.Exit(0, kKilled);
  const auto orders = job_.Feed({.kind = Event::Kind::kBegun, .generation = Generation(2)});
  EXPECT_EQ(KindsOf(orders), Kinds{Action::Kind::kAbort}) << "of its own arena";
  EXPECT_FALSE(job_.state.ranks[2].quiesced) << "it joined, and unwinds from there";
}

TEST_F(InPlace, WhoGaveUpWhileOthersWereStartedIsNotWaitedForInVain) {
  job_.Exit(1, kKilled);
  Say(Event::Kind::kQuiesced, 0);
  Gathered();
  Say(Event::Kind::kQuiesced, 2);
  job_.Feed({.kind = Event::Kind::kBegun, .generation = Generation(2)});
  Say(Event::Kind::kQuiesced, 2);
  Say(Event::Kind::kStarted, 1);
  EXPECT_EQ(job_.state.phase, Phase::kGathering);
}

TEST_F(InPlace, WhatSurvivorsCarryOverIsProgress) {
  job_.policy.process_restarts = 100;
  for (std::uint64_t fault = 1; fault <= 10; ++fault) {
    Recover();
    ASSERT_EQ(job_.state.phase, Phase::kRunning) << fault;
    Say(Event::Kind::kCarries, 1);
    for (RankStatus& rank : job_.state.ranks) {
      rank.step = 10 + fault;
      rank.steps = true;
    }
  }
}

TEST_F(InPlace, AnEndOfALongDeadProcessIsNotThatOfItsSuccessor) {
  Recover();
  job_.Feed({.kind = Event::Kind::kExited,
             .rank = Rank(1),
             .generation = Generation(1),
             .ending = kKilled});
  EXPECT_EQ(job_.state.phase, Phase::kRunning);
  job_.Exit(0, kKilled);
  EXPECT_EQ(job_.state.fault->spawned, Generation(1));
  EXPECT_EQ(job_.state.fault->generation, Generation(2));
}

bool AnyInState(const JobState& state, RankState wanted) {
  return std::ranges::any_of(state.ranks,
                             [&](const RankStatus& rank) { return rank.state == wanted; });
}

Event RandomEvent(Rng& rng, const JobState& state) {
  Event event;
  event.kind = static_cast<Event::Kind>(rng.Below(13));
  // Rare, so that histories get long.
  const bool ends = event.kind == Event::Kind::kInterrupt || event.kind == Event::Kind::kGiveUp;
  if (ends && rng.Below(100) != 0) event.kind = Event::Kind::kTick;
  if (state.phase == Phase::kStarting && rng.Below(8) != 0) event.kind = Event::Kind::kStarted;
  if (state.phase == Phase::kQuiescing && rng.Below(2) != 0) event.kind = Event::Kind::kQuiesced;
  const bool gives_up = state.phase == Phase::kRunning && event.kind == Event::Kind::kQuiesced;
  if (gives_up && rng.Below(8) != 0) event.kind = Event::Kind::kExited;
  event.rank = Rank(static_cast<std::uint32_t>(rng.Below(4)));
  event.generation = event.rank.value() < state.ranks.size()
                         ? state.ranks[event.rank.value()].spawned
                         : state.generation;
  if (rng.Below(8) == 0) event.generation = Generation(event.generation.value() - 1);
  event.signal = SIGTERM;
  event.ranks = 2 + static_cast<std::uint32_t>(rng.Below(3));
  if (rng.Below(32) != 0) event.ending.signal = SIGKILL;
  return event;
}

TEST(Advance, RandomHistoriesKeepOneGenerationAndAlwaysEnd) {
  const std::uint64_t seed = 20261129;
  std::uint64_t events = 0;
  std::uint64_t in_place = 0;
  std::uint64_t again = 0;
  std::uint64_t kills = 0;
  for (std::uint64_t history = 0; events < 100'000; ++history) {
    Rng rng(Mix(seed, history));
    Job job(3);
    job.policy.process_restarts = static_cast<std::uint32_t>(rng.Below(20));
    std::uint64_t ends = 0;
    bool stop_pending = false;
    for (int i = 0; i < 300; ++i, ++events) {
      if (job.state.phase == Phase::kEnded && rng.Below(8) == 0) break;
      const Event event = RandomEvent(rng, job.state);
      if (event.kind == Event::Kind::kStopped) stop_pending = false;
      for (RankStatus& rank : job.state.ranks) {
        const bool runs = rank.state == RankState::kRunning;
        rank.step += job.state.phase == Phase::kRunning && rng.Below(32) == 0 ? 1 : 0;
        const int odds = rank.spawned == Generation(1) ? 1 : 8;
        rank.carries = rank.carries || (runs && rng.Below(odds) == 0);
      }
      job.now += milliseconds(rng.Below(30));
      const JobState before = job.state;
      for (const Action& order : job.Feed(event)) {
        ends += order.kind == Action::Kind::kEnd ? 1 : 0;
        stop_pending = stop_pending || order.kind == Action::Kind::kStop;
        if (order.kind == Action::Kind::kKill) {
          const RankStatus& doomed = before.ranks[order.rank.value()];
          ASSERT_EQ(doomed.spawned, before.generation) << "who has the state is not killed";
          ASSERT_FALSE(doomed.carries || doomed.doomed);
          ++kills;
        }
        if (order.kind == Action::Kind::kStartRanks) {
          ASSERT_EQ(order.generation.value(), before.generation.value() + 1);
          ASSERT_TRUE(before.phase == Phase::kIdle || before.phase == Phase::kStopping ||
                      before.phase == Phase::kQuiescing);
          const bool here = order.restart == RestartKind::kInPlace;
          in_place += here ? 1 : 0;
          again += here && job.state.stalled > 0 ? 1 : 0;
          ASSERT_LE(job.state.stalled, job.policy.most_stalled);
          for (const RankStatus& rank : job.state.ranks) {
            const bool kept = here && rank.state == RankState::kRunning;
            ASSERT_NE(kept, rank.spawned == job.state.generation);
            ASSERT_FALSE(rank.doomed);
          }
        }
      }
      // A start is waited for as long as somebody is to start, and no longer than its limit.
      const JobState& after = job.state;
      const bool starts = after.phase == Phase::kStarting;
      ASSERT_EQ(starts, starts && AnyInState(after, RankState::kStarting));
      const bool ticks =
          starts || after.phase == Phase::kGathering || after.phase == Phase::kQuiescing;
      ASSERT_FALSE(ticks && event.kind == Event::Kind::kTick && after.deadline < job.now);
      ASSERT_LE(ends, 1U);
      ASSERT_EQ(ends == 1, job.state.phase == Phase::kEnded);
      ASSERT_EQ(job.state.verdict.has_value(),
                job.state.phase == Phase::kEnding || job.state.phase == Phase::kEnded);
    }
    // Whatever happened: one stop, once answered, ends it.
    job.Feed({.kind = Event::Kind::kInterrupt, .signal = SIGTERM});
    job.Feed({.kind = Event::Kind::kStopped});
    ASSERT_EQ(job.state.phase, Phase::kEnded);
  }
  EXPECT_GT(in_place, 100U);
  EXPECT_GT(again, 10U);
  EXPECT_GT(kills, 10U);
}

}  // namespace
}  // namespace muster::agent
