#include "os/clone_into_parent.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "os/process.h"
#include "os/wait_fd.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MUSTER_TSAN 1
#endif
#endif

namespace muster::os {
namespace {

/// What the shim sees: a copy that the zygote made and that is now its own child.
struct Grandchild {
  pid_t pid = 0;
  Fd pidfd;
};

/// parent (this test) → zygote → copy. The copy runs `body` and exits with what it returns.
Grandchild CloneThroughZygote(const std::function<int()>& body) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read(ends[0]);
  Fd write(ends[1]);
  const pid_t zygote = ::fork();
  if (zygote == 0) {
    auto copy = CloneIntoParent();
    if (!copy) ::_exit(1);
    if (copy->in_child) ::_exit(body());
    const pid_t pid = copy->pid;
    ::_exit(::write(write.get(), &pid, sizeof(pid)) == sizeof(pid) ? 0 : 2);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(zygote, &status, 0), zygote);
  EXPECT_EQ(status, 0);
  write.Reset();
  pid_t pid = 0;
  if (::read(read.get(), &pid, sizeof(pid)) != sizeof(pid)) return {};
  // It is our child and nobody reaped it, so the pid is still its own.
  return {pid, Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)))};
}

Exit Reap(const Grandchild& grandchild) {
  EXPECT_TRUE(*WaitFd(grandchild.pidfd.get(), POLLIN, std::chrono::seconds(20)));
  const auto exit = PollPidfd(grandchild.pidfd.get());
  EXPECT_TRUE(exit && exit->has_value());
  return exit && *exit ? **exit : Exit{.code = -1};
}

class CloneIntoParentTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef MUSTER_TSAN
    GTEST_SKIP() << "ThreadSanitizer's own thread makes every process one with threads";
#endif
  }
};

TEST_F(CloneIntoParentTest, MakesTheCopyAChildOfOurParentWhichReapsIt) {
  const pid_t shim = ::getpid();
  const Grandchild copy = CloneThroughZygote([=] { return ::getppid() == shim ? 42 : 1; });
  ASSERT_TRUE(copy.pidfd.valid());
  EXPECT_EQ(Reap(copy), Exit{.code = 42});
  // Reaped: nothing is left, not even for __WALL.
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1);
}

TEST_F(CloneIntoParentTest, ReportsTheSignalThatKilledTheCopy) {
  const Grandchild copy = CloneThroughZygote([] {
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(Reap(copy).signal, SIGKILL);
}

TEST_F(CloneIntoParentTest, LeavesACopyInWhichThreadsAndRaiseWork) {
  const Grandchild copy = CloneThroughZygote([] {
    // raise and pthread_kill use the thread id that glibc keeps; a stale one would hit the zygote.
    static std::atomic<int> caught = 0;
    struct sigaction action{};
    action.sa_handler = [](int) { ++caught; };
    ::sigaction(SIGUSR1, &action, nullptr);
    ::raise(SIGUSR1);
    ::pthread_kill(::pthread_self(), SIGUSR1);
    if (caught != 2) return 1;
    std::atomic<int> sum = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&sum, i] {
          const auto block = std::make_unique<std::vector<int>>(100'000, i);
          sum += (*block)[99'999];
        });
      }
    }
    return sum == 28 ? 0 : 2;
  });
  EXPECT_EQ(Reap(copy), Exit{});
}

TEST_F(CloneIntoParentTest, LeavesACopyWhoseMutexesKnowTheirOwner) {
  const Grandchild copy = CloneThroughZygote([] {
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutex_init(&mutex, &attributes);
    // A thread dies with the lock; the list that tells the kernel must be registered.
    std::thread([&] { ::pthread_mutex_lock(&mutex); }).join();
    if (::pthread_mutex_lock(&mutex) != EOWNERDEAD) return 1;
    ::pthread_mutex_consistent(&mutex);
    if (::pthread_mutex_lock(&mutex) != EDEADLK) return 2;
    return ::pthread_mutex_unlock(&mutex) == 0 ? 0 : 3;
  });
  EXPECT_EQ(Reap(copy), Exit{});
}

TEST_F(CloneIntoParentTest, CanMakeManyCopies) {
  std::vector<Grandchild> copies;
  for (int i = 0; i < 20; ++i) {
    copies.push_back(CloneThroughZygote([i] { return i; }));
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Reap(copies[static_cast<std::size_t>(i)]).code, i);
}

TEST_F(CloneIntoParentTest, RefusesAProcessWithThreads) {
  std::atomic<bool> done = false;
  std::thread other([&] { done.wait(false); });
  const auto copy = CloneIntoParent();
  done = true;
  done.notify_all();
  other.join();
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().code(), Code::kPrecondition);
}

}  // namespace
}  // namespace muster::os
