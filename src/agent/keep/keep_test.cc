#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "agent/coordinator/job_fields.h"
#include "agent/keep/archive.h"
#include "agent/keep/supervisor.h"
#include "os/process.h"

namespace muster::agent {
namespace {

JobState SomeState() {
  JobState state;
  state.phase = Phase::kGathering;
  state.generation = Generation(7);
  state.ranks = {
      {.state = RankState::kRunning, .step = 12, .spawned = Generation(3)},
      {.state = RankState::kFailed,
       .ending = Ending{.signal = 9, .hang = "idle", .still = true, .rule = {"loss", "nan"}},
       .exception = "ValueError: no"}};
  state.fault = Fault{.rank = Rank(1), .exception = "ValueError: no", .others = {Rank(4)}};
  state.next = RestartKind::kFull;
  state.process_restarts = {Instant(std::chrono::seconds(3)), Instant(std::chrono::seconds(9))};
  state.verdict = Verdict{false, 93, "none is left"};
  return state;
}

std::string Written(JobState state) {
  ArchiveWriter writer;
  writer("state", state);
  return writer.Take();
}

TEST(Archive, GivesBackWhatItWasGiven) {
  const std::string bytes = Written(SomeState());
  JobState state;
  ArchiveReader reader(bytes);
  reader("state", state);
  ASSERT_TRUE(reader.whole());
  EXPECT_EQ(Written(state), bytes);
  EXPECT_EQ(state.ranks[1].ending->rule.why, "nan");
  EXPECT_TRUE(state.ranks[1].ending->still);
  EXPECT_EQ(state.fault->others, std::vector<Rank>{Rank(4)});
  EXPECT_EQ(state.next, RestartKind::kFull);
  EXPECT_EQ(state.verdict->reason, "none is left");
}

TEST(Archive, SaysOfEveryShorterTextThatItIsNotWhole) {
  const std::string bytes = Written(SomeState());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    JobState state;
    ArchiveReader reader(std::string_view(bytes).substr(0, size));
    reader("state", state);
    EXPECT_FALSE(reader.whole()) << size;
  }
  JobState state;
  const std::string longer = bytes + "x";
  ArchiveReader reader(longer);
  reader("state", state);
  EXPECT_FALSE(reader.whole());
}

TEST(SavedState, HoldsTheNewestThatWasSaved) {
  SavedState saved = *SavedState::Create();
  EXPECT_FALSE(saved.Load());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(saved.Save("state " + std::to_string(i)));
    EXPECT_EQ(saved.Load(), "state " + std::to_string(i));
  }
  EXPECT_FALSE(saved.Save(std::string(9 << 20, 'x')));
  EXPECT_FALSE(saved.Load()) << "an old one would be taken for the newest";
}

/// Runs `life` under a supervisor that these tests' signals do not reach.
Result<std::string> Under(const SupervisorOptions& options, const Life& life, KeptFds kept = {}) {
  const int signals[] = {SIGUSR2};
  auto blocked = os::SignalFd::Block(signals);
  if (!blocked) return blocked.error();
  return Supervise(options, *blocked, std::move(kept), life);
}

TEST(Supervisor, GivesWhatTheLifeReturned) {
  const std::string large(300'000, 'r');
  EXPECT_EQ(*Under({}, [&](Kept&) { return large; }), large);
}

TEST(Supervisor, LetsAnotherLifeFindWhatTheLastOneKept) {
  const auto result = Under({}, [](Kept& kept) -> std::string {
    if (kept.past().count == 0) {
      int pipe[2];
      EXPECT_EQ(::pipe(pipe), 0);
      EXPECT_EQ(::write(pipe[1], "words", 5), 5);
      kept.Keep("pipe", {pipe[0], pipe[1]});
      kept.Keep("dropped", {pipe[0]});
      kept.Drop("dropped");
      kept.Save("where it stood");
      ::raise(SIGKILL);
    }
    char words[6] = {};
    auto fds = kept.Take("pipe");
    if (fds.size() != 2 || !kept.Take("dropped").empty()) return "not kept";
    if (::read(fds[0].get(), words, 5) != 5) return "not the pipe";
    return kept.past().death + ", " + *kept.past().state + ", " + words;
  });
  EXPECT_EQ(*result, "killed by SIGKILL, where it stood, words");
}

TEST(Supervisor, GivesTheFirstLifeWhatItWasGiven) {
  KeptFds given;
  given["one"].emplace_back(::memfd_create("one", 0));
  const auto result = Under(
      {}, [](Kept& kept) { return std::to_string(kept.Take("one").size()); }, std::move(given));
  EXPECT_EQ(*result, "1");
}

TEST(Supervisor, GivesUpWhenTooManyDie) {
  const auto result = Under({.lives = 3}, [](Kept&) -> std::string { ::_exit(4); });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kBug);
  EXPECT_EQ(result.error().message(),
            "the process that steers the run died 3 times, at last: exit code 4");
}

TEST(Supervisor, LetsNobodyFollowWhenSomethingWasNotKept) {
  const pid_t parent = ::getpid();
  const auto result = Under({}, [&](Kept& kept) -> std::string {
    if (kept.past().count > 0) return "another followed";
    ::kill(parent, SIGSTOP);  // as by Ctrl-Z
    for (int i = 0; i < 5'000; ++i) kept.Keep("fd." + std::to_string(i), {0});
    ::kill(parent, SIGCONT);
    ::_exit(1);
  });
  EXPECT_FALSE(result);
}

TEST(Supervisor, HearsTheResultOfALifeThatItCouldNotListenTo) {
  const pid_t parent = ::getpid();
  const auto result = Under({}, [&](Kept& kept) -> std::string {
    ::kill(parent, SIGSTOP);
    for (int i = 0; i < 5'000; ++i) kept.Keep("fd." + std::to_string(i), {0});
    ::kill(parent, SIGCONT);
    return "heard";
  });
  EXPECT_EQ(*result, "heard");
}

TEST(Supervisor, PassesSignalsOn) {
  const pid_t parent = ::getpid();
  const auto result = Under({}, [parent](Kept&) -> std::string {
    const int numbers[] = {SIGUSR2};
    auto own = os::SignalFd::Block(numbers);
    ::kill(parent, SIGUSR2);
    pollfd polled{own->fd(), POLLIN, 0};
    if (::poll(&polled, 1, 10'000) != 1) return "none came";
    return os::SignalName((**own->Read()).number);
  });
  EXPECT_EQ(*result, "SIGUSR2");
}

TEST(Supervisor, LeavesNoProcessBehind) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const auto result = Under({}, [&](Kept&) -> std::string {
    if (::fork() == 0) {
      ::setsid();
      for (;;) ::pause();  // holds the pipe
    }
    return "left";
  });
  EXPECT_EQ(*result, "left");
  ::close(pipe[1]);
  char byte;
  pollfd polled{pipe[0], POLLIN, 0};
  ASSERT_EQ(::poll(&polled, 1, 10'000), 1);
  EXPECT_EQ(::read(pipe[0], &byte, 1), 0) << "somebody still holds the pipe";
  ::close(pipe[0]);
}

TEST(Kept, KeepsNothingWithoutASupervisor) {
  Kept kept;
  kept.Keep("x", {0});
  kept.Save("state");
  EXPECT_FALSE(kept.supervised());
  EXPECT_TRUE(kept.Take("x").empty());
}

}  // namespace
}  // namespace muster::agent
