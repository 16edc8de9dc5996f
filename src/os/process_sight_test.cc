#include "os/process_sight.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>

namespace muster::os {
namespace {

/// A child that does what it is told until the test ends.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    body();
    ::_exit(0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, __WALL);
  }
  pid_t pid() const { return pid_; }
  /// Waits for a stop or its end, which is not reaped.
  void Await(int what) const {
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &info, what | WNOWAIT), 0);
  }

 private:
  const pid_t pid_;
};

TEST(SeeProcess, CountsTheTimeOfOneThatComputes) {
  volatile std::uint64_t work = 0;
  for (std::uint64_t i = 0; i < 100'000'000; ++i) work = work + i;
  const auto self = SeeProcess(::getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->state, ProcessState::kRunning);
  EXPECT_GT(self->cpu_ticks, 0U);
  EXPECT_GT(self->start_ticks, 0U);
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_GE(self->threads, 1U);
}

TEST(SeeProcess, KnowsOneThatIsStopped) {
  const Child child([] { ::raise(SIGSTOP); });
  child.Await(WSTOPPED);
  EXPECT_EQ(SeeProcess(child.pid())->state, ProcessState::kStopped);
}

TEST(ProcessWatch, SeesTheSameProcessUntilItIsReaped) {
  std::optional<ProcessWatch> watch;
  {
    const Child child([] { ::raise(SIGSTOP); });
    child.Await(WSTOPPED);
    watch = *ProcessWatch::Open(child.pid());
    EXPECT_EQ(watch->See()->state, ProcessState::kStopped);
    EXPECT_EQ(watch->See()->start_ticks, SeeProcess(child.pid())->start_ticks);
  }
  const auto gone = watch->See();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Code::kNotFound);
}

TEST(SeeProcess, KnowsOneThatADebuggerHas) {
  const Child child([] {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
  });
  child.Await(WSTOPPED);
  EXPECT_EQ(SeeProcess(child.pid())->state, ProcessState::kTraced);
}

TEST(SeeProcess, KnowsOneThatADebuggerHasAndLetsRun) {
  const Child child([] { ::pause(); });
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr), 0);
  EXPECT_EQ(SeeProcess(child.pid())->state, ProcessState::kTraced);
}

TEST(SeeProcess, KnowsTheDeadFromTheGone) {
  pid_t pid = 0;
  {
    const Child child([] {});
    pid = child.pid();
    child.Await(WEXITED);
    EXPECT_EQ(SeeProcess(pid)->state, ProcessState::kDead);
  }
  EXPECT_EQ(SeeProcess(pid).error().code(), Code::kNotFound);
}

TEST(SeeIo, CountsWhatIsReadAndWritten) {
  const auto before = SeeIo(::getpid());
  ASSERT_TRUE(before);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "1234", 4), 4);
  const auto after = SeeIo(::getpid());
  ASSERT_TRUE(after);
  EXPECT_GE(*after, *before + 4);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_FALSE(SeeIo(0));
}

}  // namespace
}  // namespace muster::os
