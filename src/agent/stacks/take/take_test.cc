#include "agent/stacks/take/take.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "agent/stacks/take/symbols.h"
#include "os/process_sight.h"

namespace muster::agent::stacks {

/// Not static, so that it has a name.
[[gnu::noinline]] void WaitHereForEver(int ready) {
  [[maybe_unused]] const auto said = ::write(ready, "x", 1);
  for (;;) ::pause();
}
[[gnu::noinline]] void TurnHereForEver(int ready) {
  [[maybe_unused]] const auto said = ::write(ready, "x", 1);
  for (volatile std::uint64_t turn = 0;;) turn = turn + 1;
}

namespace {

/// A child in one of them.
class Standing {
 public:
  explicit Standing(void (*place)(int)) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      place(ends[1]);
      ::_exit(0);
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  Standing(const Standing&) = delete;
  Standing& operator=(const Standing&) = delete;
  ~Standing() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, __WALL);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

std::vector<std::string> FunctionsOf(const Process& process) {
  std::vector<std::string> names;
  for (const Thread& thread : process.threads) {
    for (const Frame& frame : thread.native) names.push_back(frame.function);
  }
  return names;
}

std::vector<Process> StacksOf(const std::vector<Target>& targets) {
  return Name(Copy(targets, std::chrono::seconds(20)), std::chrono::seconds(60));
}

TEST(Take, NamesWhereProcessesStandAndLetsThemGoOn) {
  const Standing waits(&WaitHereForEver);
  const Standing turns(&TurnHereForEver);
  const auto stacks = StacksOf({{4, waits.pid()}, {5, turns.pid()}});
  ASSERT_EQ(stacks.size(), 2u);
  EXPECT_EQ(stacks[0].rank, 4u);
  EXPECT_THAT(FunctionsOf(stacks[0]), testing::Contains(testing::HasSubstr("WaitHereForEver")));
  EXPECT_THAT(FunctionsOf(stacks[1]), testing::Contains(testing::HasSubstr("TurnHereForEver")));
  const auto before = os::SeeProcess(turns.pid());
  ASSERT_TRUE(before);
  EXPECT_NE(before->state, os::ProcessState::kTraced);
  EXPECT_NE(before->state, os::ProcessState::kStopped);
}

TEST(Take, SeesOneThatIsStoppedAndLeavesItStopped) {
  const Standing waits(&WaitHereForEver);
  ::kill(waits.pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(waits.pid(), &status, WUNTRACED), waits.pid());
  const auto stacks = StacksOf({{0, waits.pid()}});
  EXPECT_EQ(stacks[0].state, "T");
  EXPECT_THAT(FunctionsOf(stacks[0]), testing::Contains(testing::HasSubstr("WaitHereForEver")));
  const auto after = os::SeeProcess(waits.pid());
  ASSERT_TRUE(after);
  EXPECT_EQ(after->state, os::ProcessState::kStopped);
}

TEST(Take, SaysThatOneIsGone) {
  pid_t pid = 0;
  {
    const Standing waits(&WaitHereForEver);
    pid = waits.pid();
  }
  const auto stacks = StacksOf({{0, pid}});
  EXPECT_EQ(stacks[0].missing, "it is gone");
  EXPECT_TRUE(stacks[0].threads.empty());
}

TEST(ParseTargets, RefusesWhatIsNoRankAndPid) {
  EXPECT_TRUE(ParseTargets({"0:12", "7:4711"}));
  for (const char* wrong : {"", "1", "1:", ":2", "1:0", "1:-3", "1:2x", "a:2"}) {
    EXPECT_FALSE(ParseTargets({wrong})) << wrong;
  }
}

TEST(FunctionName, LeavesOutParametersAndTemplateArguments) {
  EXPECT_EQ(FunctionName("main"), "main");
  EXPECT_EQ(FunctionName("pthread_cond_wait@@GLIBC_2.3.2"), "pthread_cond_wait");
  EXPECT_EQ(FunctionName("_ZNSt6thread4joinEv"), "std::thread::join");
  EXPECT_EQ(FunctionName("_ZN12_GLOBAL__N_14MainEiPPc"), "(anonymous)::Main");
  EXPECT_EQ(FunctionName("_ZNSt6vectorIiSaIiEE9push_backERKi"), "std::vector::push_back");
  EXPECT_EQ(FunctionName("read.constprop.0"), "read");
}

TEST(LineOf, ReadsALocationTable) {
  // def f():  (line 1), three instructions of one unit: line 2 short form, line 4 by +2 in the
  // long form, then one without a line.
  const std::string table = {
      static_cast<char>(0x80 | 11 << 3), 0, 0,        // one line form, +1, columns
      static_cast<char>(0x80 | 14 << 3), 4, 0, 0, 0,  // long form, +2
      static_cast<char>(0x80 | 15 << 3),              // none
  };
  EXPECT_EQ(LineOf(table, 1, 0), 2);
  EXPECT_EQ(LineOf(table, 1, 2), 4);
  EXPECT_EQ(LineOf(table, 1, 4), 0);
  EXPECT_EQ(LineOf(table, 1, 400), 0);
  EXPECT_EQ(LineOf("", 1, 0), 0);
}

}  // namespace
}  // namespace muster::agent::stacks
