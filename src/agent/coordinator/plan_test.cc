// The table of the ladder, the way of a restart, and random histories.
#include "agent/coordinator/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "agent/coordinator/fake_job.h"
#include "spec/env.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

const Ending kKilled{.signal = SIGKILL, .time = kNow};
const Ending kCode2{.code = 2, .time = kNow};
const Ending kCode3{.code = 3, .time = kNow};
const Ending kFollowed{.code = spec::kFollowerExit, .time = kNow};

JobState Faulty(const Ending& ending, std::uint64_t step = 10, bool steps = true) {
  JobState state;
  state.phase = Phase::kGathering;
  state.generation = Generation(2);
  state.ranks.resize(2);
  state.fault = Fault{.rank = Rank(1),
                      .generation = Generation(2),
                      .ending = ending,
                      .step = step,
                      .steps = steps,
                      .exception = "ValueError: bad"};
  return state;
}

struct LadderCase {
  const char* name;
  JobState state;
  Policy policy;
  std::optional<RestartKind> restart;
  int exit_code;
  const char* reason;
};

JobState With(JobState state, const std::function<void(JobState&)>& change) {
  change(state);
  return state;
}

std::vector<LadderCase> Ladder() {
  const Policy usual;
  const Policy off{.process_restarts = 0, .full_restarts = 0};
  const auto used = [](std::size_t processes, std::size_t fulls, seconds ago) {
    return [=](JobState& state) {
      state.process_restarts.assign(processes, kNow - ago);
      state.full_restarts.assign(fulls, kNow - ago);
      state.restarts = static_cast<std::uint32_t>(processes + fulls);
    };
  };
  const Ending not_found{.start_error = ENOENT, .never_found = true};
  const Ending refused{.start_error = EBUSY};
  const Ending no_zygote{.start_error = ESRCH};
  const Ending silent{.start_error = ETIMEDOUT};
  return {
      {"first fault", Faulty(kKilled), usual, RestartKind::kProcesses, 0, "restart 1 of 3"},
      {"third", With(Faulty(kKilled), used(2, 0, seconds(9))), usual, RestartKind::kProcesses, 0,
       "restart 3 of 3"},
      {"fourth is full", With(Faulty(kKilled), used(3, 0, seconds(9))), usual, RestartKind::kFull,
       0, "full restart 1 of 1"},
      {"old ones do not count", With(Faulty(kKilled), used(3, 1, std::chrono::hours(7))), usual,
       RestartKind::kProcesses, 0, "restart 1 of 3"},
      {"nothing left", With(Faulty(kKilled), used(3, 1, seconds(9))), usual, std::nullopt, 93,
       "no restart left (4 used)"},
      {"off: the signal's code", Faulty(kKilled), off, std::nullopt, 137, "restarts are off"},
      {"off: its own code", Faulty(kCode3), off, std::nullopt, 3, "exit code 3"},
      {"no progress", With(Faulty(kKilled), [](JobState& s) { s.without_progress = 3; }), usual,
       std::nullopt, 93, "no new durable step in 3 generations"},
      {"no progress, steps unknown",
       With(Faulty(kKilled, 0, false), [](JobState& s) { s.without_progress = 3; }), usual,
       RestartKind::kProcesses, 0, ""},
      {"command not there", Faulty(not_found), usual, std::nullopt, 127, "could not be started"},
      {"zygote refuses", With(Faulty(refused), [](JobState& s) { s.use_zygote = true; }), off,
       RestartKind::kExec, 0, "executed from now on"},
      {"zygote never worked", With(Faulty(no_zygote), [](JobState& s) { s.use_zygote = true; }),
       off, RestartKind::kExec, 0, "executed from now on"},
      {"zygote says nothing", With(Faulty(silent), [](JobState& s) { s.use_zygote = true; }), off,
       RestartKind::kExec, 0, "does not answer"},
      {"zygote died",
       With(Faulty(no_zygote), [](JobState& s) { s.use_zygote = s.zygote_served = true; }), off,
       RestartKind::kNewZygote, 0, "a new one"},
      {"no zygote, clone refuses", Faulty(refused), usual, RestartKind::kProcesses, 0, ""},
      {"the shim was lost", With(Faulty(kKilled), [](JobState& s) { s.without_shim = true; }),
       usual, RestartKind::kProcesses, 0, "restart 1 of 3, with a new shim"},
  };
}

/// Crashes that come again.
std::vector<LadderCase> Repetitions() {
  const Policy usual;
  const auto before = [](const Ending& ending, std::uint64_t step, const char* exception) {
    return [=](JobState& state) {
      state.crashes.push_back({.rank = Rank(0),
                               .generation = Generation(1),
                               .ending = ending,
                               .step = step,
                               .steps = true,
                               .exception = exception});
    };
  };
  const auto twin = [](std::uint32_t twins, nanoseconds lived) {
    return [=](JobState& state) {
      state.early_twins = twins;
      state.fault->lived = lived;
      state.last_fault = state.fault;
    };
  };
  return {
      {"same exception, same step", With(Faulty(kCode3), before(kCode3, 10, "ValueError: bad")),
       usual, std::nullopt, 3, "second time"},
      {"same exception, other step", With(Faulty(kCode3), before(kCode3, 9, "ValueError: bad")),
       usual, RestartKind::kProcesses, 0, ""},
      {"other exception, same step", With(Faulty(kCode3), before(kCode3, 10, "KeyError")), usual,
       RestartKind::kProcesses, 0, ""},
      {"same but for its numbers, same step",
       With(With(Faulty(kCode3), before(kCode3, 10, "bad pointer 0x7f00 of 512")),
            [](JobState& s) { s.fault->exception = "bad pointer 0x5500 of 31"; }),
       usual, std::nullopt, 3, "second time"},
      {"same exception, same step, two crashes ago",
       With(With(Faulty(kCode3), before(kCode3, 10, "ValueError: bad")),
            before(kCode3, 0, "KeyError")),
       usual, std::nullopt, 3, "second time"},
      {"a follower twice", With(Faulty(kFollowed), before(kFollowed, 10, "ValueError: bad")), usual,
       RestartKind::kProcesses, 0, ""},
      {"killed from outside twice", With(Faulty(kKilled), before(kKilled, 10, "ValueError: bad")),
       usual, RestartKind::kProcesses, 0, ""},
      {"steps unknown", With(Faulty(kCode3, 10, false), before(kCode3, 10, "ValueError: bad")),
       usual, RestartKind::kProcesses, 0, ""},
      {"as soon and the same again", With(Faulty(kCode3, 0, false), twin(1, seconds(1))), usual,
       std::nullopt, 3, "for the third time"},
      {"as soon and the same again but for its numbers",
       With(With(Faulty(kCode3, 0, false), twin(1, seconds(1))),
            [](JobState& s) {
              s.last_fault->exception = "12:00:07 pid 31: bad";
              s.fault->exception = "12:03:54 pid 77: bad";
            }),
       usual, std::nullopt, 3, "for the third time"},
      {"the same again once", With(Faulty(kCode3, 0, false), twin(0, seconds(1))), usual,
       RestartKind::kProcesses, 0, ""},
      {"the same again, but late", With(Faulty(kCode3, 0, false), twin(1, seconds(31))), usual,
       RestartKind::kProcesses, 0, ""},
  };
}

/// Exit code 2, which is how programs refuse their command line.
std::vector<LadderCase> UsageErrors() {
  const Policy usual;
  const auto first = [](JobState& state) {
    state.generation = state.fault->generation = Generation(1);
  };
  return {
      {"usage", With(Faulty(kCode2, 0), first), usual, std::nullopt, 2, "was not understood"},
      {"usage, steps unknown", With(Faulty(kCode2, 0, false), first), usual, std::nullopt, 2,
       "was not understood"},
      {"code 2 of who publishes no steps, late",
       With(With(Faulty(kCode2, 0, false), first),
            [](JobState& s) { s.fault->lived = seconds(31); }),
       usual, RestartKind::kProcesses, 0, ""},
      {"code 2 behind a step", With(Faulty(kCode2, 7), first), usual, RestartKind::kProcesses, 0,
       ""},
      {"code 2 while another rank works",
       With(With(Faulty(kCode2, 0), first), [](JobState& s) { s.ranks[0].step = 1; }), usual,
       RestartKind::kProcesses, 0, ""},
      {"code 2 in a later generation", Faulty(kCode2, 0), usual, RestartKind::kProcesses, 0, ""},
  };
}

/// What a program on our library says that no start will change.
std::vector<LadderCase> Refusals() {
  const Policy usual;
  const Ending code1{.code = 1, .time = kNow};
  const auto refused = [](JobState& state) { state.fault->refused = true; };
  const auto both = [&](const std::function<void(JobState&)>& change) {
    return With(With(Faulty(code1, 0), refused), change);
  };
  const char* reason =
      "exit code 1 before its first step: ValueError: bad; not started again: "
      "another start would end in the same way";
  return {
      {"refused", With(Faulty(code1, 0), refused), usual, std::nullopt, 1, reason},
      {"refused by the first to come so far",
       both([](JobState& s) { s.generation = s.fault->generation = Generation(5); }), usual,
       std::nullopt, 1, reason},
      {"refused while another rank works", both([](JobState& s) { s.ranks[0].step = 1; }), usual,
       RestartKind::kProcesses, 0, ""},
      {"refused where others worked before", both([](JobState& s) { s.worked = true; }), usual,
       RestartKind::kProcesses, 0, ""},
      {"killed meanwhile", With(Faulty(kKilled, 0), refused), usual, RestartKind::kProcesses, 0,
       ""},
      {"not refused", Faulty(code1, 0), usual, RestartKind::kProcesses, 0, ""},
  };
}

TEST(PlanRestart, ChoosesTheRungOfItsTable) {
  std::vector<LadderCase> cases = Ladder();
  for (LadderCase& c : Repetitions()) cases.push_back(std::move(c));
  for (LadderCase& c : Refusals()) cases.push_back(std::move(c));
  for (LadderCase& c : UsageErrors()) cases.push_back(std::move(c));
  for (const LadderCase& c : cases) {
    SCOPED_TRACE(c.name);
    const Decision decision = PlanRestart(c.state, kNow, c.policy);
    EXPECT_EQ(decision.restart, c.restart);
    EXPECT_THAT(c.restart ? decision.reason : decision.verdict.reason, HasSubstr(c.reason));
    if (!c.restart) {
      EXPECT_EQ(decision.verdict.exit_code, c.exit_code);
      EXPECT_FALSE(decision.verdict.succeeded);
    }
  }
}

TEST(PlanRestart, KnowsWhoCameToNoWork) {
  for (const LadderCase& c : UsageErrors()) {
    EXPECT_EQ(CameToNoWork(c.state, c.policy), !c.restart) << c.name;
  }
  EXPECT_TRUE(CameToNoWork(Faulty({.start_error = ENOENT, .never_found = true}, 0, false), {}));
  EXPECT_FALSE(CameToNoWork(Faulty(kCode3, 0, false), {}));
}

TEST(PlanRestart, SaysWhatStruckOnceAndInOneSentence) {
  JobState state = Faulty(kCode3);
  state.fault->exception = "ValueError: bad thing.";
  const Decision decision = PlanRestart(state, kNow, {.process_restarts = 0, .full_restarts = 0});
  EXPECT_EQ(decision.verdict.reason,
            "rank 1 ended with exit code 3 at step 10: ValueError: bad thing; restarts are off");
  EXPECT_EQ(decision.reason, "restarts are off");  // the record names the rest already
  state.fault->step = 0;
  EXPECT_EQ(Headline(*state.fault), "rank 1 ended with exit code 3 before its first step");
}

TEST(Advance, ARestartGoesThroughGatherStopAndANewGeneration) {
  Job job(2);
  auto orders = job.Feed({.kind = Event::Kind::kStart});
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].kind, Action::Kind::kStartRanks);
  EXPECT_EQ(orders[0].generation, Generation(1));
  job.StartAll();
  EXPECT_EQ(job.state.phase, Phase::kRunning);

  EXPECT_TRUE(job.Exit(1, {.signal = SIGKILL}).empty());
  EXPECT_EQ(job.state.phase, Phase::kGathering);
  job.now += milliseconds(19);
  EXPECT_TRUE(job.Feed({.kind = Event::Kind::kTick}).empty());
  job.now += milliseconds(1);
  orders = job.Feed({.kind = Event::Kind::kTick});
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].kind, Action::Kind::kStop);
  EXPECT_EQ(orders[0].grace.count(), 0) << "survivors on our library hold nothing";

  job.Exit(0, {.signal = SIGKILL});
  EXPECT_EQ(job.state.ranks[0].state, RankState::kStopped) << "stopped by us is no fault";
  orders = job.Feed({.kind = Event::Kind::kStopped});
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].generation, Generation(2));
  EXPECT_EQ(job.state.restarts, 1U);
  EXPECT_EQ(job.state.fault->rank, Rank(1));
}

TEST(Advance, TheEarliestDeathIsTheCauseWhateverTheOrderOfReports) {
  Job job(3);
  job.Begin();
  job.Exit(2, {.code = 1});
  job.Exit(0, {.signal = SIGSEGV}, milliseconds(5));
  job.Exit(1, {.code = 1});
  EXPECT_EQ(job.state.phase, Phase::kStopping) << "nobody is left to be waited for";
  EXPECT_EQ(job.state.fault->rank, Rank(0));
}

TEST(Advance, WhoDiesInTheSameWayIsNamedBesideTheCause) {
  Job job(5);
  job.Begin();
  for (RankStatus& rank : job.state.ranks) rank.step = 60;
  job.Exit(3, kKilled);
  job.Exit(1, kKilled, milliseconds(1));
  job.Exit(0, {.code = 1});
  job.Exit(2, kKilled);
  job.now += milliseconds(20);
  job.Feed({.kind = Event::Kind::kTick});
  EXPECT_EQ(job.state.fault->rank, Rank(1));
  EXPECT_EQ(Headline(*job.state.fault), "ranks 1, 2 and 3 killed by SIGKILL at step 60");
}

TEST(Advance, OfExitCodesOnlyTheSameReasonIsTheSameEnd) {
  for (const bool same : {true, false}) {
    Job job(2);
    job.Begin();
    for (const std::uint32_t rank : {0U, 1U}) {
      const std::string bad = "ValueError: bad row " + std::to_string(rank);
      job.Feed({.kind = Event::Kind::kExited,
                .rank = Rank(rank),
                .generation = Generation(1),
                .ending = kCode3,
                .text = same || rank == 0 ? bad : "Connection closed by peer"});
    }
    EXPECT_EQ(Headline(*job.state.fault), same
                                              ? "ranks 0 and 1 ended with exit code 3 before their "
                                                "first step"
                                              : "rank 0 ended with exit code 3 before its first "
                                                "step");
  }
}

TEST(Headline, OfManyRanksSomeAreNamed) {
  Fault fault{.rank = Rank(7), .ending = kKilled};
  for (std::uint32_t i = 20; i > 10; --i) fault.others.emplace_back(i);
  EXPECT_EQ(Headline(fault), "ranks 7, 11, 12, 13, 14, 15, 16, 17 and 3 more killed by SIGKILL");
}

TEST(Advance, AFollowerIsNotTheCauseWhenAnotherRankFailsInTime) {
  for (const bool follower_first : {true, false}) {
    Job job(3);
    job.Begin();
    if (!follower_first) job.Exit(0, {.code = 1});
    job.Exit(1, {.code = spec::kFollowerExit}, milliseconds(5));
    job.now += milliseconds(follower_first ? 2000 : 10);
    EXPECT_TRUE(job.Feed({.kind = Event::Kind::kTick}).empty());
    if (follower_first) job.Exit(0, {.code = 1});
    EXPECT_EQ(job.state.fault->rank, Rank(0));
    EXPECT_EQ(job.state.fault->ending.code, 1);
    job.now += job.policy.gather;
    EXPECT_EQ(job.Feed({.kind = Event::Kind::kTick}).size(), 1U) << "one more moment and it stops";
  }
}

TEST(Advance, AFollowerAloneIsTheCauseAfterAWait) {
  Job job(2);
  job.Begin();
  job.Exit(1, {.code = spec::kFollowerExit});
  job.now += job.policy.follower_wait - milliseconds(1);
  EXPECT_TRUE(job.Feed({.kind = Event::Kind::kTick}).empty());
  job.now += milliseconds(1);
  EXPECT_EQ(job.Feed({.kind = Event::Kind::kTick}).size(), 1U);
  EXPECT_EQ(job.state.fault->rank, Rank(1));
}

TEST(Advance, AnInterruptDoesNotWaitForTheCauseOfAFollower) {
  Job job(2);
  job.Begin();
  job.Exit(1, {.code = spec::kFollowerExit});
  const auto orders = job.Feed({.kind = Event::Kind::kInterrupt, .signal = SIGTERM});
  EXPECT_EQ(orders.at(0).kind, Action::Kind::kStop);
  EXPECT_EQ(job.state.verdict->exit_code, 128 + SIGTERM);
}

TEST(Advance, TheCodeOfAFollowerMeansNothingOfAForeignProgram) {
  Job job(2);
  job.Begin();
  job.state.ranks[1].steps = false;
  job.Exit(1, {.code = spec::kFollowerExit});
  job.now += job.policy.gather;
  EXPECT_EQ(job.Feed({.kind = Event::Kind::kTick}).size(), 1U);
}

TEST(Advance, ForeignProgramsGetTheirGrace) {
  Job job(2);
  job.Begin();
  job.state.ranks[0].steps = false;
  job.Exit(1, {.signal = SIGKILL});
  job.now += milliseconds(20);
  const auto orders = job.Feed({.kind = Event::Kind::kTick});
  EXPECT_EQ(orders.at(0).grace, job.policy.grace);
  EXPECT_EQ(orders.at(0).signal, SIGTERM);
}

TEST(Advance, AllRanksFinishedSucceedsAndClearsWhatTheyLeft) {
  Job job(2);
  job.Begin();
  EXPECT_TRUE(job.Exit(0, {}).empty());
  const auto orders = job.Exit(1, {});
  EXPECT_EQ(orders.at(0).kind, Action::Kind::kStop);
  EXPECT_EQ(job.Feed({.kind = Event::Kind::kStopped}).at(0).kind, Action::Kind::kEnd);
  EXPECT_TRUE(job.state.verdict->succeeded);
}

TEST(Advance, AnInterruptEndsARestartToo) {
  Job job(2);
  job.Begin();
  job.Exit(1, {.signal = SIGKILL});
  job.now += milliseconds(20);
  job.Feed({.kind = Event::Kind::kTick});
  ASSERT_EQ(job.state.phase, Phase::kStopping);
  job.Feed({.kind = Event::Kind::kInterrupt, .signal = SIGINT});
  const auto orders = job.Feed({.kind = Event::Kind::kInterrupt, .signal = SIGINT});
  EXPECT_EQ(orders.at(0).grace.count(), 0) << "the second kills";
  job.Feed({.kind = Event::Kind::kStopped});
  EXPECT_EQ(job.state.phase, Phase::kEnded);
  EXPECT_EQ(job.state.verdict->exit_code, 130);
}

TEST(Advance, OnlyCtrlCAgainShortensTheGrace) {
  for (const std::vector<int>& signals :
       {std::vector{SIGTERM, SIGTERM}, std::vector{SIGHUP, SIGTERM}, std::vector{SIGINT, SIGTERM},
        std::vector{SIGTERM, SIGINT}, std::vector{SIGINT, SIGQUIT}}) {
    Job job(2);
    job.Begin();
    for (const int signal : signals) {
      const auto orders = job.Feed({.kind = Event::Kind::kInterrupt, .signal = signal});
      EXPECT_EQ(orders.at(0).grace, job.policy.grace) << signals[0] << ", " << signals[1];
    }
    job.Feed({.kind = Event::Kind::kInterrupt, .signal = SIGINT});
    const auto orders = job.Feed({.kind = Event::Kind::kInterrupt, .signal = SIGINT});
    EXPECT_EQ(orders.at(0).grace.count(), 0);
  }
}

TEST(Advance, AStopThatIsAnsweredTwiceDoesNotStopTheNextStart) {
  Job job(2);
  job.Begin();
  job.Exit(0, {.signal = SIGKILL});
  job.Exit(1, {.signal = SIGKILL});
  ASSERT_EQ(job.state.phase, Phase::kStopping);
  EXPECT_EQ(job.Feed({.kind = Event::Kind::kStopped}).at(0).kind, Action::Kind::kStartRanks);
  EXPECT_TRUE(job.Feed({.kind = Event::Kind::kStopped}).empty());
  job.StartAll();
  EXPECT_EQ(job.state.phase, Phase::kRunning);
}

TEST(Advance, AStopHasADeadlineThatNothingProlongs) {
  Job job(2);
  job.Begin();
  job.Feed({.kind = Event::Kind::kInterrupt, .signal = SIGINT});
  EXPECT_EQ(job.state.deadline, job.now + job.policy.grace + job.policy.stop_limit);
  job.Feed({.kind = Event::Kind::kInterrupt, .signal = SIGINT});
  const Instant soon = job.now + job.policy.kill_limit;  // who lost patience has waited enough
  EXPECT_EQ(job.state.deadline, soon);
  job.now += milliseconds(500);
  job.Feed({.kind = Event::Kind::kInterrupt, .signal = SIGTERM});
  EXPECT_EQ(job.state.deadline, soon);
}

TEST(Advance, AGraceOfCenturiesIsNotOver) {
  Job job(2);
  job.policy.grace = nanoseconds::max();
  job.Begin();
  job.Feed({.kind = Event::Kind::kInterrupt, .signal = SIGINT});
  EXPECT_EQ(job.state.deadline, kNever);
}

TEST(Advance, AStartThatTakesTooLongIsATimeOut) {
  Job job(1);
  job.Feed({.kind = Event::Kind::kStart});
  job.now += job.policy.start_limit;
  job.Feed({.kind = Event::Kind::kTick});
  EXPECT_EQ(job.state.fault->ending.start_error, ETIMEDOUT);
}

TEST(Advance, TheLimitOfAStartCountsFromTheLastSignThatTheZygoteLoads) {
  Job job(1);
  job.Feed({.kind = Event::Kind::kStart});
  job.now += job.policy.start_limit - seconds(1);
  job.Feed({.kind = Event::Kind::kLoading});
  job.now += job.policy.start_limit - seconds(1);
  job.Feed({.kind = Event::Kind::kTick});
  EXPECT_EQ(job.state.phase, Phase::kStarting);
  job.now += seconds(1);
  job.Feed({.kind = Event::Kind::kTick});
  EXPECT_EQ(job.state.fault->ending.start_error, ETIMEDOUT);
}

const Ending kWithShim{
    .signal = SIGKILL, .time = kNow, .with = "the shim of node n1, killed by SIGKILL"};

/// As the run loop says it: the shim, and all below it.
std::vector<Action> LoseShim(Job& job) {
  job.Feed({.kind = Event::Kind::kShimLost});
  return job.Feed({.kind = Event::Kind::kNodeLost,
                   .ending = kWithShim,
                   .ranks = static_cast<std::uint32_t>(job.state.ranks.size())});
}

/// What the next start is like, once the stop is answered.
Action AnswerStop(Job& job) {
  const auto orders = job.Feed({.kind = Event::Kind::kStopped});
  EXPECT_EQ(orders.size(), 1U);
  return orders.empty() ? Action{} : orders[0];
}

TEST(ShimLost, AllRanksAreOneFaultAndTheNextStartBringsAnother) {
  Job job(3);
  job.Begin();
  for (RankStatus& rank : job.state.ranks) rank.step = 60, rank.carries = true;
  const auto orders = LoseShim(job);
  ASSERT_EQ(orders.size(), 1U) << "nobody is left to be aborted or waited for";
  EXPECT_EQ(orders[0].kind, Action::Kind::kStop);
  EXPECT_EQ(Headline(*job.state.fault),
            "ranks 0, 1 and 2 lost with the shim of node n1, killed by SIGKILL at step 60");
  const Action start = AnswerStop(job);
  EXPECT_EQ(start.kind, Action::Kind::kStartRanks);
  EXPECT_EQ(start.restart, RestartKind::kFull);
  EXPECT_EQ(start.generation, Generation(2));
  EXPECT_EQ(job.state.process_restarts.size(), 1U) << "counted as any fault";
  EXPECT_TRUE(job.state.full_restarts.empty());
  EXPECT_FALSE(job.state.without_shim);
  job.StartAll();
  job.Exit(1, kKilled);
  job.now += seconds(1);
  job.Feed({.kind = Event::Kind::kTick});
  EXPECT_EQ(AnswerStop(job).restart, RestartKind::kProcesses) << "the new one lives";
}

TEST(ShimLost, BeforeTheFirstStartCostsNothing) {
  Job job(2);
  EXPECT_TRUE(LoseShim(job).empty());
  const auto orders = job.Feed({.kind = Event::Kind::kStart});
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].restart, RestartKind::kFull);
  EXPECT_EQ(orders[0].generation, Generation(1));
  EXPECT_EQ(job.state.restarts, 0U);
}

TEST(ShimLost, InTheMiddleOfAStartIsAFaultOfThatGeneration) {
  Job job(2);
  job.Feed({.kind = Event::Kind::kStart});
  job.Feed({.kind = Event::Kind::kStarted, .rank = Rank(0), .generation = Generation(1)});
  EXPECT_EQ(LoseShim(job).at(0).kind, Action::Kind::kStop);
  EXPECT_EQ(job.state.fault->others, std::vector<Rank>{Rank(1)});
  EXPECT_EQ(AnswerStop(job).restart, RestartKind::kFull);
}

TEST(ShimLost, WhileRanksUnwindLeavesNobodyToGoOnWith) {
  Job job(3);
  job.Begin();
  for (RankStatus& rank : job.state.ranks) rank.step = 60, rank.carries = true;
  job.Exit(1, kKilled);
  job.now += seconds(1);
  job.Feed({.kind = Event::Kind::kTick});
  ASSERT_EQ(job.state.phase, Phase::kQuiescing);
  job.Feed({.kind = Event::Kind::kQuiesced, .rank = Rank(0), .generation = Generation(1)});
  EXPECT_EQ(LoseShim(job).at(0).kind, Action::Kind::kStop);
  EXPECT_THAT(job.reason, HasSubstr("no rank is left"));
  EXPECT_EQ(AnswerStop(job).restart, RestartKind::kFull);
  EXPECT_EQ(job.state.restarts, 1U) << "one fault led to the other";
}

TEST(ShimLost, WhileRanksAreStoppedIsNoOtherFault) {
  Job job(2);
  job.Begin();
  job.Exit(1, kCode3);
  job.now += seconds(1);
  job.Feed({.kind = Event::Kind::kTick});
  ASSERT_EQ(job.state.phase, Phase::kStopping);
  EXPECT_TRUE(LoseShim(job).empty());
  EXPECT_EQ(job.state.ranks[0].state, RankState::kStopped);
  EXPECT_EQ(AnswerStop(job).restart, RestartKind::kFull);
  EXPECT_EQ(job.state.restarts, 1U);
  EXPECT_EQ(job.state.last_fault->ending.code, 3);
}

TEST(ShimLost, AtTheEndChangesNoVerdict) {
  Job job(2);
  job.Begin();
  for (const std::uint32_t rank : {0U, 1U}) job.Exit(rank, {});
  ASSERT_EQ(job.state.phase, Phase::kEnding);
  EXPECT_TRUE(LoseShim(job).empty());
  EXPECT_EQ(AnswerStop(job).kind, Action::Kind::kEnd);
  EXPECT_TRUE(job.state.verdict->succeeded);
}

TEST(ShimLost, UsesUpTheRestartsAndThenEndsTheRun) {
  Job job(2);
  job.policy.process_restarts = 2;
  job.policy.full_restarts = 1;
  job.Begin();
  for (int restart = 0; restart < 5; ++restart) {  // 2, a full one, and 2 more
    LoseShim(job);
    ASSERT_EQ(AnswerStop(job).restart, RestartKind::kFull) << restart;
    for (std::uint32_t i = 0; i < 2; ++i) {
      job.Feed(
          {.kind = Event::Kind::kStarted, .rank = Rank(i), .generation = job.state.generation});
    }
  }
  LoseShim(job);
  EXPECT_EQ(AnswerStop(job).kind, Action::Kind::kEnd);
  EXPECT_EQ(job.state.verdict->exit_code, 93);
  EXPECT_THAT(job.state.verdict->reason, HasSubstr("no restart left (5 used)"));
}

TEST(ShimLost, SaidOnceMoreByWhoFollowsIsNoOtherFault) {
  Job job(2);
  job.Begin();
  LoseShim(job);
  ASSERT_EQ(job.state.phase, Phase::kStopping);
  EXPECT_TRUE(LoseShim(job).empty());
  AnswerStop(job);
  EXPECT_EQ(job.state.restarts, 1U);
}

TEST(NodeLost, TakesItsOwnRanksAloneAndThoseThatLive) {
  Job job(6);
  job.Begin();
  for (RankStatus& rank : job.state.ranks) rank.step = 60, rank.carries = true;
  job.Exit(2, {});
  const auto orders =
      job.Feed({.kind = Event::Kind::kNodeLost, .rank = Rank(2), .ending = kWithShim, .ranks = 2});
  EXPECT_TRUE(orders.empty()) << "a rank that has finished cannot go on in place";
  EXPECT_EQ(job.state.ranks[2].state, RankState::kFinished);
  EXPECT_EQ(job.state.ranks[3].state, RankState::kFailed);
  for (const std::uint32_t rank : {0U, 1U, 4U, 5U}) {
    EXPECT_EQ(job.state.ranks[rank].state, RankState::kRunning);
  }
  EXPECT_EQ(job.state.fault->rank, Rank(3));
  EXPECT_FALSE(job.state.without_shim);
}

TEST(Advance, ReportsOfAnOlderGenerationChangeNothing) {
  Job job(2);
  job.Begin();
  const Event stale{.kind = Event::Kind::kExited,
                    .rank = Rank(0),
                    .generation = Generation(0),
                    .ending = kKilled};
  EXPECT_TRUE(job.Feed(stale).empty());
  EXPECT_EQ(job.state.phase, Phase::kRunning);
}

TEST(Advance, WhoRefusesEndsTheRunUntilSomebodyHasWorked) {
  for (const bool worked : {false, true}) {
    Job job(1);
    job.policy.process_restarts = 100;
    job.Begin();
    job.state.ranks[0].step = worked ? 1 : 0;
    job.Exit(0, {.signal = SIGKILL});
    job.Feed({.kind = Event::Kind::kStopped});
    job.StartAll();
    job.state.ranks[0].refused = true;
    job.Exit(0, {.code = 1});
    job.Feed({.kind = Event::Kind::kStopped});
    EXPECT_EQ(job.state.phase == Phase::kEnded, !worked);
    if (worked) {
      EXPECT_FALSE(job.state.ranks[0].refused) << "what was said of another process";
    } else {
      EXPECT_EQ(job.state.verdict->exit_code, 1);
    }
  }
}

TEST(Advance, WhoLosesItsDataAfterStepsOfItsOwnEndsTheRun) {
  Job job(1);
  job.policy.process_restarts = 100;
  job.Begin();
  job.state.ranks[0].step = 20;
  job.state.ranks[0].refused = true;
  job.Exit(0, {.code = 1});
  job.Feed({.kind = Event::Kind::kStopped});
  EXPECT_EQ(job.state.phase, Phase::kEnded);
  EXPECT_EQ(job.state.verdict->exit_code, 1);
  EXPECT_NE(job.state.verdict->reason.find("another start would end in the same way"),
            std::string::npos);
}

TEST(Advance, ThreeGenerationsWithoutADurableStepAreEnough) {
  Job job(1);
  job.policy.process_restarts = 100;
  job.Begin();
  for (int fault = 1; fault <= 3; ++fault) {
    job.state.ranks[0].step = static_cast<std::uint64_t>(fault);
    job.Exit(0, {.signal = SIGKILL});
    job.Feed({.kind = Event::Kind::kStopped});
    if (fault < 3) job.StartAll();
  }
  EXPECT_EQ(job.state.phase, Phase::kEnded);
  EXPECT_EQ(job.state.verdict->exit_code, 93);
}

/// What another coordinator orders first.
std::vector<Action> Resumed(Job& job) {
  const Plan plan = Resume(job.state, job.now, job.policy);
  job.state = plan.next;
  return plan.actions;
}

TEST(Resume, LeavesARunThatRunsAsItIs) {
  Job job(2);
  job.Begin();
  EXPECT_TRUE(Resumed(job).empty());
  EXPECT_EQ(job.state.phase, Phase::kRunning);
}

TEST(Resume, DoesAStartAgainWithEveryRankAndCountsItOnce) {
  Job job(2);
  job.Begin();
  job.Exit(1, kKilled);
  job.now += seconds(1);
  job.Feed({});
  job.Feed({.kind = Event::Kind::kStopped});
  ASSERT_EQ(job.state.phase, Phase::kStarting);
  ASSERT_EQ(job.state.restarts, 1);
  const auto orders = Resumed(job);
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].kind, Action::Kind::kStop);
  const auto again = job.Feed({.kind = Event::Kind::kStopped});
  ASSERT_EQ(again.size(), 1);
  EXPECT_EQ(again[0].kind, Action::Kind::kStartRanks);
  EXPECT_EQ(job.state.generation, Generation(3));
  EXPECT_EQ(job.state.restarts, 1);
  EXPECT_EQ(job.state.process_restarts.size(), 1);
}

TEST(Resume, StopsOnceMoreWithWhatIsLeftOfTheGrace) {
  Job job(2);
  job.Begin();
  for (RankStatus& rank : job.state.ranks) rank.steps = false;
  job.policy.grace = seconds(30);
  job.Exit(1, kKilled);
  job.now += seconds(1);
  job.Feed({});
  ASSERT_EQ(job.state.phase, Phase::kStopping);
  job.now += seconds(10);
  const auto orders = Resumed(job);
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].grace, seconds(20));
  job.Feed({.kind = Event::Kind::kStopped});
  EXPECT_EQ(job.state.restarts, 1);
}

TEST(Resume, AbortsOnceMoreWhileFaultsAreGathered) {
  Job job(3);
  job.Begin();
  for (std::uint32_t i = 0; i < 3; ++i) {
    job.Feed({.kind = Event::Kind::kCarries, .rank = Rank(i), .generation = job.state.generation});
  }
  job.Exit(1, kKilled);
  ASSERT_EQ(job.state.phase, Phase::kGathering);
  const auto orders = Resumed(job);
  ASSERT_EQ(orders.size(), 1);
  EXPECT_EQ(orders[0].kind, Action::Kind::kAbort);
}

TEST(Resume, EndsWhatWasEnding) {
  Job job(2);
  job.Begin();
  job.Feed({.kind = Event::Kind::kInterrupt, .signal = SIGTERM});
  ASSERT_EQ(Resumed(job).at(0).kind, Action::Kind::kStop);
  job.Feed({.kind = Event::Kind::kStopped});
  EXPECT_EQ(job.state.verdict->exit_code, 128 + SIGTERM);
  EXPECT_EQ(Resumed(job).at(0).kind, Action::Kind::kEnd);
}

}  // namespace
}  // namespace muster::agent
