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

}  // namespace
}  // namespace muster::agent
