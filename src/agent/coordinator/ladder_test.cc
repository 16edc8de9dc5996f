// What the ladder takes from how a worker ended; its table of cases is in plan_test.cc.
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "agent/coordinator/plan.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;

const Instant kNow{seconds(1000)};

TEST(DiedAt, ADeathFromOutsideCountsFromTheLastSignOfLife) {
  Fault fault;
  fault.ending = {.signal = SIGKILL, .time = kNow};
  EXPECT_EQ(DiedAt(fault), kNow);
  fault.alive = kNow - seconds(2);
  EXPECT_EQ(DiedAt(fault), fault.alive);
  fault.alive = kNow + seconds(1);  // never later than the death that was seen
  EXPECT_EQ(DiedAt(fault), kNow);
  fault.alive = kNow - seconds(2);
  fault.ending = {.code = 3, .time = kNow};
  EXPECT_EQ(DiedAt(fault), kNow);
}

TEST(PlanRestart, TakesOnlyTheCommandsOwnErrorsAsFinal) {
  for (const int error : {ENOENT, EACCES, ENOEXEC, ENOTDIR, ELOOP, E2BIG}) {
    EXPECT_TRUE(IsCommandAtFault(error)) << error;
  }
  for (const int error : {0, ENOMEM, EMFILE, ENFILE, EAGAIN, EIO, EINVAL, ESRCH, EPERM}) {
    EXPECT_FALSE(IsCommandAtFault(error)) << error;
  }
}

TEST(PlanRestart, StopsAtTheBudgetOfTheWholeRunWhateverThePeriod) {
  Policy policy;
  policy.total_restarts = 5;
  JobState state;
  state.fault = Fault{};
  state.fault->ending = {.signal = SIGKILL, .time = kNow};
  // Five in five periods: none of them counts against a period any more.
  state.restarts = 4;
  EXPECT_TRUE(PlanRestart(state, kNow, policy).restart);
  state.restarts = 5;
  const Decision decision = PlanRestart(state, kNow, policy);
  EXPECT_FALSE(decision.restart);
  EXPECT_EQ(decision.verdict.exit_code, 93);
  EXPECT_EQ(decision.reason, "no restart left (5 of 5 in the whole run)");
  EXPECT_EQ(MostRestarts(policy), 5U);
  policy.total_restarts = 0;
  EXPECT_EQ(PlanRestart(state, kNow, policy).reason, "restarts are off");
}

}  // namespace
}  // namespace muster::agent
