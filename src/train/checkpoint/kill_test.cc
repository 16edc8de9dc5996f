// kill -9 at random instants while two real processes save over and over: whatever is listed can be
// loaded, `latest` names a whole checkpoint, and nothing committed is lost.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <optional>

#include "base/fd.h"
#include "coll/group.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/lock.h"
#include "train/checkpoint/sample_test.h"

namespace muster::checkpoint {
namespace {

class GroupAgreement final : public Agreement {
 public:
  explicit GroupAgreement(coll::Group& group) : group_(group) {}
  Result<bool> AllOk(bool ok) override { return group_.AllOk(ok, "checkpoint"); }

 private:
  coll::Group& group_;
};

constexpr std::uint32_t kWorld = 2;

/// A worker of one generation: saves step after step until it is killed.
[[noreturn]] void Work(int arena, Rank rank, Generation generation, const std::string& folder,
                       std::uint64_t first_step, int ready) {
  auto group = coll::Group::Open(
      {.rank = rank, .world = kWorld, .arena_fd = arena, .generation = generation});
  if (!group) ::_exit(1);
  GroupAgreement agreement(*group);
  std::optional<FolderLock> lock;
  if (rank == Rank(0)) {
    // The generation before was killed an instant ago: its lock went with it.
    if (!MakeFolder(PosixFiles(), folder)) ::_exit(2);
    auto taken = FolderLock::Take(folder, "kill", std::chrono::seconds(5));
    if (!taken || !taken->held() || !CleanLeftovers(PosixFiles(), folder)) ::_exit(2);
    lock = std::move(*taken);
  }
  for (std::uint64_t step = first_step;; ++step) {
    const Sample sample(step, 16);
    SaveRequest request = sample.Request(folder, step, rank, kWorld);
    request.manifest.generation = generation;
    request.run = "kill";
    request.keep_last = 2;
    if (!Save(PosixFiles(), agreement, request)) ::_exit(3);
    if (::write(ready, "s", 1) != 1) ::_exit(4);
  }
}

struct Workers {
  std::vector<pid_t> pids;
  Fd ready;
};

Workers Start(const std::string& folder, Generation generation, std::uint64_t first_step) {
  const Fd arena(*coll::CreateArena(kWorld, 0, generation));
  int ends[2];
  MUSTER_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  Workers workers{.ready = Fd(ends[0])};
  const Fd write_end(ends[1]);
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) Work(arena.get(), Rank(rank), generation, folder, first_step, ends[1]);
    workers.pids.push_back(pid);
  }
  return workers;
}

/// Lets the workers run for `microseconds` after their first `saves` saves, then kills both.
void RunAndKill(const Workers& workers, std::uint64_t saves, std::uint64_t microseconds) {
  char byte = 0;
  for (std::uint64_t i = 0; i < saves; ++i)
    MUSTER_CHECK(::read(workers.ready.get(), &byte, 1) == 1);
  const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(microseconds * 1000)};
  ::ppoll(nullptr, 0, &pause, nullptr);
  for (const pid_t pid : workers.pids) ::kill(pid, SIGKILL);
  for (const pid_t pid : workers.pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "a worker ended by itself: " << WEXITSTATUS(status);
  }
}

/// Every listed checkpoint is whole and holds the values of its step; returns the newest step.
std::uint64_t CheckFolder(const std::string& folder) {
  const auto all = ListCheckpoints(PosixFiles(), folder);
  if (!all) return 0;
  for (const CheckpointInfo& info : *all) {
    auto checkpoint = Checkpoint::Open(PosixFiles(), info.path);
    EXPECT_TRUE(checkpoint) << checkpoint.error().message();
    if (!checkpoint) continue;
    EXPECT_EQ(Sample(info.step, 16).Compare(*checkpoint), "") << info.path;
  }
  const auto latest = PosixFiles().ReadAll(folder + "/latest", 64_KiB);
  if (latest) {
    const std::string path = folder + "/" + latest->substr(0, latest->size() - 1);
    EXPECT_TRUE(Checkpoint::Open(PosixFiles(), path)) << path;
  }
  return all->empty() ? 0 : all->back().step;
}

TEST(KillNine, LeavesOnlyWholeCheckpointsAtAnyInstant) {
  const std::uint64_t seed = 20261129u + ::testing::UnitTest::GetInstance()->random_seed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  const TemporaryFolder folder;
  const std::string checkpoints = folder / "checkpoints";
  std::uint64_t newest = 0;
  for (std::uint64_t kills = 0; kills < 60; ++kills) {
    const Workers workers = Start(checkpoints, Generation(kills + 1), newest + 1);
    RunAndKill(workers, rng.Below(3), rng.Below(12'000));
    const std::uint64_t now = CheckFolder(checkpoints);
    ASSERT_GE(now, newest) << "a committed checkpoint was lost";
    newest = now;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(newest, 30u) << "the kills came before anything was saved";
}

}  // namespace
}  // namespace muster::checkpoint
