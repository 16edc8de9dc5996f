#include "os/procfs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <latch>
#include <thread>

#include "os/process.h"

namespace muster::os {
namespace {

constexpr std::string_view kTail =
    " S 10 11 12 0 -1 4194560 1 2 3 4 500 600 7 8 20 0 3 0 987654 1000 200 18446744073709551615 "
    "1\n";

ProcessStat StatOf(const std::string& name) {
  return *ParseProcessStat("4711 (" + name + ")" + std::string(kTail));
}

TEST(ParseProcessStat, ReadsTheFieldsOfAnOrdinaryProcess) {
  const ProcessStat stat = StatOf("python");
  EXPECT_EQ(stat.pid, 4711);
  EXPECT_EQ(stat.name, "python");
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.parent, 10);
  EXPECT_EQ(stat.group, 11);
  EXPECT_EQ(stat.session, 12);
  EXPECT_EQ(stat.user_ticks, 500u);
  EXPECT_EQ(stat.system_ticks, 600u);
  EXPECT_EQ(stat.threads, 3u);
  EXPECT_EQ(stat.start_ticks, 987654u);
}

TEST(ParseProcessStat, IsNotFooledByANameThatLooksLikeFields) {
  for (const std::string name : {"a) R 1 2 3", ") ", "((", "a b\n", " (x) Z", ""}) {
    const ProcessStat stat = StatOf(name);
    EXPECT_EQ(stat.name, name);
    EXPECT_EQ(stat.state, 'S');
    EXPECT_EQ(stat.parent, 10);
  }
}

TEST(ParseProcessStat, RefusesWhatIsNoStatLine) {
  const std::string whole = "1 (init)" + std::string(kTail);
  EXPECT_TRUE(ParseProcessStat(whole));
  for (const std::string text :
       {"", "1", "1 (init", "1 (init) ", "x (init) S 1", ") (", "1 (i) SS 1"}) {
    const auto stat = ParseProcessStat(text);
    ASSERT_FALSE(stat) << text;
    EXPECT_EQ(stat.error().code(), Code::kDataLoss);
  }
  EXPECT_FALSE(ParseProcessStat(whole.substr(0, 60)));
}

TEST(ReadProcessStat, ReadsItsOwnProcess) {
  char before[16] = {};
  ::prctl(PR_GET_NAME, before);
  ::prctl(PR_SET_NAME, "x) R (\n 1");
  const ProcessStat stat = *ReadProcessStat(::getpid());
  ::prctl(PR_SET_NAME, before);
  EXPECT_EQ(stat.name, "x) R (\n 1");
  EXPECT_EQ(stat.pid, ::getpid());
  EXPECT_EQ(stat.parent, ::getppid());
  EXPECT_EQ(ReadProcessStat(1 << 22).error().code(), Code::kNotFound);
}

TEST(ReadProcessSignals, TellsWhichSignalsHaveAHandler) {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) {};
  ::sigaction(SIGUSR1, &action, &before);
  const ProcessSignals with = *ReadProcessSignals(::getpid());
  ::sigaction(SIGUSR1, &before, nullptr);
  const ProcessSignals without = *ReadProcessSignals(::getpid());
  EXPECT_TRUE(with.Catches(SIGUSR1));
  EXPECT_FALSE(without.Catches(SIGUSR1));
  EXPECT_FALSE(with.Catches(0));
  EXPECT_FALSE(with.Catches(65));
}

TEST(ParseProcessSignals, NeedsEveryField) {
  const std::string text =
      "Name:\tSigCgt:\\n\nTracerPid:\t7\nSigBlk:\t0000000000000001\nSigIgn:\t1000\nSigCgt:\t"
      "ffffffffffffffff\n";
  const ProcessSignals signals = *ParseProcessSignals(text);
  EXPECT_EQ(signals.tracer, 7);
  EXPECT_EQ(signals.blocked, 1u);
  EXPECT_EQ(signals.ignored, 0x1000u);
  EXPECT_TRUE(signals.Catches(64));
  EXPECT_FALSE(ParseProcessSignals(""));
  EXPECT_FALSE(ParseProcessSignals("SigBlk:\t1\nSigIgn:\tx\nSigCgt:\t0\nTracerPid:\t0\n"));
}

TEST(ReadChildren, FindsChildrenOfEveryThread) {
  const Process sleeper = *Spawn({.program = "/bin/sleep", .arguments = {"sleep", "1000"}});
  std::latch spawned(1), done(1);
  pid_t other = 0;
  std::jthread thread([&] {
    const Process process = *Spawn({.program = "/bin/sleep", .arguments = {"sleep", "1000"}});
    other = process.pid();
    spawned.count_down();
    done.wait();
    EXPECT_TRUE(process.Send(SIGKILL));
    EXPECT_TRUE(*process.Wait(std::chrono::seconds(20)));
  });
  spawned.wait();
  const auto children = *ReadChildren(::getpid());
  EXPECT_THAT(children, testing::IsSupersetOf({sleeper.pid(), other}));
  EXPECT_GE(*CountThreads(), 2u);
  done.count_down();
  EXPECT_TRUE(sleeper.Send(SIGKILL));
  EXPECT_TRUE(*sleeper.Wait(std::chrono::seconds(20)));
}

}  // namespace
}  // namespace muster::os
