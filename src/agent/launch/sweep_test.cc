#include "agent/launch/sweep.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "os/process.h"

namespace muster::agent {
namespace {

os::Process Sleep(const std::string& line = "NAME=value") {
  auto process =
      os::Spawn({.program = "/bin/sleep", .arguments = {"sleep", "600"}, .environment = {line}});
  EXPECT_TRUE(process.has_value());
  return *std::move(process);
}

bool Lives(const os::Process& process) {
  const auto exit = process.Poll();
  return exit.has_value() && !exit->has_value();
}

void End(const os::Process& process) {
  static_cast<void>(process.Send(SIGKILL));
  static_cast<void>(process.Wait(std::chrono::seconds(10)));
}

TEST(Sweep, SparesStrangersAndWhatIsMarked) {
  const os::Process stray = Sleep();
  const os::Process marked = Sleep("MUSTER_SSH=17");
  const os::Process alike = Sleep("MUSTER_SSH=171");
  const os::Process stranger = Sleep();
  EXPECT_TRUE(SweepAfterShim("", {.strangers = {stranger.pid()}, .mark = "MUSTER_SSH=17"}));
  EXPECT_FALSE(Lives(stray));
  EXPECT_FALSE(Lives(alike));
  EXPECT_TRUE(Lives(marked));
  EXPECT_TRUE(Lives(stranger));
  End(marked);
  End(stranger);
  EXPECT_TRUE(ChildrenOf(::getpid()).empty());
}

/// A child of ours that sweeps as the coordinator of a run does, whose parent is the supervisor.
bool SweptByAChild(const Orphanage& orphanage) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(SweepAfterShim("", orphanage) ? 0 : 1);
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

TEST(Sweep, MeetsWhatCameToTheSupervisor) {
  const os::Process stray = Sleep();
  const os::Process stranger = Sleep();
  EXPECT_TRUE(SweptByAChild({.strangers = {stranger.pid()}}));
  EXPECT_TRUE(Lives(stray)) << "no child of its own";
  EXPECT_TRUE(SweptByAChild({.supervisor = ::getpid() + 1, .strangers = {stranger.pid()}}));
  EXPECT_TRUE(Lives(stray)) << "that is not its parent";
  EXPECT_TRUE(SweptByAChild({.supervisor = ::getpid(), .strangers = {stranger.pid()}}));
  EXPECT_FALSE(Lives(stray));
  EXPECT_TRUE(Lives(stranger));
  End(stranger);
}

TEST(Sweep, EndsADescendantThatLostItsParents) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::setsid();
    std::signal(SIGTERM, SIG_IGN);
    if (::fork() == 0) ::pause();
    ::pause();
  }
  EXPECT_TRUE(SweepAfterShim(""));
  EXPECT_TRUE(ChildrenOf(::getpid()).empty());
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace muster::agent
