#include "os/signals.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>

#include "os/wait_fd.h"

namespace muster::os {
namespace {

TEST(SignalFd, ReadsASignalInsteadOfDyingFromIt) {
  SignalFd signals = *SignalFd::Block(std::array{SIGTERM, SIGUSR1});
  EXPECT_FALSE(signals.Read()->has_value());
  ::kill(::getpid(), SIGTERM);
  ASSERT_TRUE(*WaitFd(signals.fd(), POLLIN, std::chrono::seconds(10)));
  const std::optional<Signal> signal = *signals.Read();
  ASSERT_TRUE(signal);
  EXPECT_EQ(signal->number, SIGTERM);
  EXPECT_EQ(signal->sender, ::getpid());
  EXPECT_EQ(signal->sender_uid, ::getuid());
  EXPECT_FALSE(signals.Read()->has_value());
}

TEST(SignalFd, RestoresTheMaskAtItsEnd) {
  sigset_t mask;
  {
    const SignalFd signals = *SignalFd::Block(std::array{SIGUSR2});
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    EXPECT_EQ(::sigismember(&mask, SIGUSR2), 1);
  }
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  EXPECT_EQ(::sigismember(&mask, SIGUSR2), 0);
}

TEST(SignalFd, RefusesASignalThatDoesNotExist) {
  const auto signals = SignalFd::Block(std::array{4711});
  ASSERT_FALSE(signals);
  EXPECT_EQ(signals.error().code(), Code::kInvalid);
}

TEST(SignalName, NamesStandardRealTimeAndUnknownSignals) {
  EXPECT_EQ(SignalName(SIGKILL), "SIGKILL");
  EXPECT_EQ(SignalName(SIGRTMIN + 3), "SIGRTMIN+3");
  EXPECT_EQ(SignalName(4711), "signal 4711");
  EXPECT_EQ(SignalName(-1), "signal -1");
}

TEST(SignalFd, StaysBlockedWhenTold) {
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  {
    const std::array<int, 1> watched{SIGUSR2};
    auto signals = *SignalFd::Block(watched);
    signals.StayBlocked();
  }
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, &before, &now);
  EXPECT_EQ(::sigismember(&now, SIGUSR2), 1);
}

}  // namespace
}  // namespace muster::os
