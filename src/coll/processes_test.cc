// Ranks as real processes over the C++ wrapper: results, faults, and hostile descriptors.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "coll/ranks_test.h"

namespace muster::coll {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

bool SameBits(std::span<const float> a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

constexpr std::size_t kSizes[] = {0, 1, 2, 15, 17, 1000, 4096, 32767, 131072, 131073, 300001};

int ReducePrivate(Group& group) {
  for (const std::size_t n : kSizes) {
    std::vector<float> values = Values(n, group.rank().value(), n);
    if (!group.AllReduce(values, "grads")) return 1;
    if (!SameBits(values, ExpectedSum(n, group.world(), n))) return 2;
  }
  return 0;
}

int ReduceInArena(Group& group) {
  for (const std::size_t n : kSizes) {
    if (n == 0) continue;
    auto memory = group.Alloc(n * 4);
    if (!memory) return 3;
    const std::span<float> values(reinterpret_cast<float*>(memory->data()), n);
    const std::vector<float> mine = Values(n, group.rank().value(), n);
    std::copy(mine.begin(), mine.end(), values.begin());
    if (!group.AllReduce(values, "grads")) return 1;
    if (!SameBits(values, ExpectedSum(n, group.world(), n))) return 2;
    // Every rank may overwrite its own result at once.
    std::fill(values.begin(), values.end(), -1.0f);
  }
  return 0;
}

/// Even ranks reduce from the arena, odd ones from private memory.
int ReduceMixed(Group& group) {
  for (const std::size_t n : kSizes) {
    std::vector<float> owned = Values(n, group.rank().value(), n);
    std::span<float> values = owned;
    if (group.rank().value() % 2 == 0 && n > 0) {
      auto memory = group.Alloc(n * 4);
      if (!memory) return 3;
      std::memcpy(memory->data(), owned.data(), n * 4);
      values = {reinterpret_cast<float*>(memory->data()), n};
    }
    if (!group.AllReduce(values, "grads")) return 1;
    if (!SameBits(values, ExpectedSum(n, group.world(), n))) return 2;
  }
  return 0;
}

class Worlds : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Worlds, SumPrivateBuffersToTheBitsOfTheReference) {
  const Fd fd = MakeArena(GetParam());
  EXPECT_THAT(RunProcesses(fd.get(), GetParam(), ReducePrivate), Each(0));
}

TEST_P(Worlds, SumArenaBuffersToTheBitsOfTheReference) {
  const Fd fd = MakeArena(GetParam(), 8 << 20);
  EXPECT_THAT(RunProcesses(fd.get(), GetParam(), ReduceInArena), Each(0));
}

TEST_P(Worlds, SumWhereOnlySomeBuffersLieInTheArena) {
  const Fd fd = MakeArena(GetParam(), 8 << 20);
  EXPECT_THAT(RunProcesses(fd.get(), GetParam(), ReduceMixed), Each(0));
}

TEST_P(Worlds, BroadcastAndGatherWhatEachRankHas) {
  const Fd fd = MakeArena(GetParam(), 8 << 20);
  const auto body = [](Group& group) {
    for (const std::size_t n : kSizes) {
      for (std::uint32_t root = 0; root < group.world(); ++root) {
        std::vector<float> values = Values(n, group.rank().value(), n);
        if (!group.Broadcast(std::as_writable_bytes(std::span(values)), Rank(root), "w")) return 1;
        if (!SameBits(values, Values(n, root, n))) return 2;
      }
      const std::vector<float> mine = Values(n, group.rank().value(), n);
      std::vector<float> all(n * group.world());
      if (!group.AllGather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                           "g"))
        return 3;
      for (std::uint32_t r = 0; r < group.world(); ++r) {
        if (!SameBits(std::span(all).subspan(r * n, n), Values(n, r, n))) return 4;
      }
    }
    return 0;
  };
  EXPECT_THAT(RunProcesses(fd.get(), GetParam(), body), Each(0));
}

TEST_P(Worlds, OverlapAllReducesOnTheProgressThread) {
  const Fd fd = MakeArena(GetParam());
  const auto body = [](Group& group) {
    std::vector<std::vector<float>> buffers;
    std::vector<Pending> pending;
    for (std::size_t i = 0; i < 40; ++i) {
      buffers.push_back(Values(i, group.rank().value(), 1000 * i));
      auto started = group.Start(buffers.back(), "bucket");
      if (!started) return 1;
      pending.push_back(*started);
      if (i == 20 && !group.Barrier("in between")) return 4;
    }
    for (std::size_t i = 0; i < 40; ++i) {
      if (!group.Wait(pending[i])) return 2;
      if (!SameBits(buffers[i], ExpectedSum(i, group.world(), 1000 * i))) return 3;
    }
    return group.Sequence() == 41 ? 0 : 5;
  };
  EXPECT_THAT(RunProcesses(fd.get(), GetParam(), body), Each(0));
}

INSTANTIATE_TEST_SUITE_P(Of, Worlds, ::testing::Values(1, 2, 3, 4, 8));

TEST(Mismatch, NamesBothSidesOnEveryRank) {
  const Fd fd = MakeArena(2);
  const auto body = [](Group& group) {
    std::vector<float> values(1024);
    const Status status =
        group.rank() == Rank(1) ? group.AllReduce(values, "grads") : group.Barrier("eval");
    if (status) return 1;
    if (status.error().code() != Code::kConflict) return 2;
    if (status.error().message() !=
        "rank 1 called all_reduce(f32 × 1024, 'grads') while rank 0 called barrier('eval')")
      return 3;
    const Status later = group.Barrier("eval");
    return !later && later.error().code() == Code::kPrecondition ? 0 : 4;
  };
  EXPECT_THAT(RunProcesses(fd.get(), 2, body), Each(0));
}

TEST(Mismatch, IsFoundInCountTypeRootAndSite) {
  for (int kind = 0; kind < 4; ++kind) {
    const Fd fd = MakeArena(2);
    const auto body = [kind](Group& group) {
      const bool odd = group.rank() == Rank(1);
      std::vector<double> memory(100);
      Status status = Ok();
      if (kind == 0)
        status = group.AllReduceRaw(memory.data(), odd ? 99 : 100, MUSTER_COLL_F32, MUSTER_COLL_SUM,
                                    "s");
      if (kind == 1)
        status = group.AllReduceRaw(memory.data(), 100, odd ? MUSTER_COLL_F32 : MUSTER_COLL_F64,
                                    MUSTER_COLL_SUM, "s");
      if (kind == 2)
        status = group.Broadcast(std::as_writable_bytes(std::span(memory)), Rank(odd ? 1 : 0), "s");
      if (kind == 3) status = group.Barrier(odd ? "this" : "that");
      return !status && status.error().code() == Code::kConflict ? 0 : 1;
    };
    EXPECT_THAT(RunProcesses(fd.get(), 2, body), Each(0)) << kind;
  }
}

TEST(Mismatch, IsTheFaultOfTheOddOneWhenMostRanksAgree) {
  const Fd fd = MakeArena(3);
  const auto body = [](Group& group) {
    const bool odd = group.rank() == Rank(1);
    const Status status = group.Barrier(odd ? "eval" : "step");
    if (status) return 1;
    if (status.error().code() != (odd ? Code::kConflict : Code::kCancelled)) return 2;
    if (status.error().message().find("rank 1 called barrier('eval') while rank 0 called "
                                      "barrier('step')") == std::string::npos) {
      return 3;
    }
    const Status later = group.Barrier("step");  // it does not wait for anybody
    return !later && later.error().code() == (odd ? Code::kPrecondition : Code::kCancelled) ? 0 : 4;
  };
  EXPECT_THAT(RunProcesses(fd.get(), 3, body), Each(0));
}

TEST(Mismatch, IsToldWhenARankHasLeft) {
  const Fd fd = MakeArena(3);
  const auto body = [](Group& group) {
    if (!group.Barrier("first")) return 1;
    if (group.rank() == Rank(1)) return 0;  // the group closes as the process returns
    const Status status = group.Barrier("second");
    if (status || status.error().code() != Code::kCancelled) return 2;
    if (status.error().message().find("rank 1 closed its group") != 0) return 3;
    const Status later = group.Barrier("third");
    return !later && later.error().code() == Code::kCancelled ? 0 : 4;
  };
  const auto run = [&](Group& group) {
    Group owned = std::move(group);
    return body(owned);
  };
  EXPECT_THAT(RunProcesses(fd.get(), 3, run), Each(0));
}

TEST(Abort, WakesEveryRankFromAnotherProcessInTheMiddleOfTheWork) {
  const Fd fd = MakeArena(4);
  std::vector<pid_t> pids;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    pids.push_back(Spawn([&, rank] {
      auto group = Group::Open({.rank = Rank(rank), .world = 4, .arena_fd = fd.get()});
      if (!group) return 9;
      std::vector<float> values(500'000, 1.0f);
      for (int i = 0;; ++i) {
        const Status status = group->AllReduce(values, "grads");
        if (!status) {
          if (status.error().code() != Code::kCancelled) return 2;
          if (status.error().message().find("rank 3 died") == std::string::npos) return 3;
          return group->Barrier("later").error().code() == Code::kCancelled ? 0 : 4;
        }
        if (i == 3 && ::write(pipe[1], "x", 1) != 1) return 5;
      }
    }));
  }
  char ready[4];
  for (char& c : ready) ASSERT_EQ(::read(pipe[0], &c, 1), 1);
  const pid_t aborter = Spawn([&] { return AbortArena(fd.get(), "rank 3 died") ? 0 : 1; });
  EXPECT_EQ(Reap(aborter), 0);
  for (const pid_t pid : pids) EXPECT_EQ(Reap(pid), 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(Abort, FreesTheOthersAfterARankWasKilled) {
  const Fd fd = MakeArena(3);
  std::vector<pid_t> pids;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    pids.push_back(Spawn([&, rank] {
      auto group = Group::Open({.rank = Rank(rank), .world = 3, .arena_fd = fd.get()});
      std::vector<float> values(300'000, 1.0f);
      for (int i = 0;; ++i) {
        const Status status = group->AllReduce(values, "grads");
        if (!status) return status.error().code() == Code::kCancelled ? 0 : 1;
        if (rank == 2 && i == 2 && ::write(pipe[1], "x", 1) != 1) return 5;
      }
    }));
  }
  char ready;
  ASSERT_EQ(::read(pipe[0], &ready, 1), 1);
  ASSERT_EQ(::kill(pids[2], SIGKILL), 0);
  EXPECT_EQ(Reap(pids[2]), 128 + SIGKILL);
  EXPECT_TRUE(AbortArena(fd.get(), "rank 2 died"));
  EXPECT_EQ(Reap(pids[0]), 0);
  EXPECT_EQ(Reap(pids[1]), 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(Timeout, NamesTheMissingRankOnEveryOtherOne) {
  const Fd fd = MakeArena(3);
  const auto body = [](Group& group) {
    if (!group.Barrier("first")) return 1;
    if (group.rank() == Rank(2)) ::_exit(0);  // without closing: nobody is told
    const Status status = group.Barrier("second");
    if (status || status.error().code() != Code::kDeadline) return 2;
    return status.error().message().find(
               "rank 2 did not arrive within 0.2 s at barrier('second')") == 0
               ? 0
               : 3;
  };
  EXPECT_THAT(RunProcesses(fd.get(), 3, body, 200'000'000), Each(0));
}

TEST(Fork, LeavesTheGroupToItsOwner) {
  const Fd fd = MakeArena(2);
  const auto body = [](Group& group) {
    std::vector<float> values(10, 1.0f);
    auto pending = group.Start(values, "makes the thread");
    if (!pending || !group.Wait(*pending)) return 1;
    const pid_t child = Spawn([&] {
      const Status status = group.Barrier("in a child");
      if (status || status.error().code() != Code::kInvalid) return 1;
      const Group closed = std::move(group);  // must not join a thread that is not there
      return 0;
    });
    if (Reap(child) != 0) return 2;
    return group.Barrier("still alive") ? 0 : 3;
  };
  EXPECT_THAT(RunProcesses(fd.get(), 2, body), Each(0));
}

std::string OpenFailure(int fd, std::uint32_t world = 2, std::uint64_t generation = 1) {
  const auto group = Group::Open(
      {.rank = Rank(0), .world = world, .arena_fd = fd, .generation = Generation(generation)});
  if (group) return "opened";
  return group.error().code() == Code::kInvalid ? group.error().message() : "another code";
}

TEST(HostileArena, IsRefusedWithTheReason) {
  const Fd good = MakeArena(2);
  EXPECT_THAT(OpenFailure(good.get(), 3), HasSubstr("for 2 ranks, not 3"));
  EXPECT_THAT(OpenFailure(good.get(), 2, 7), HasSubstr("generation 1, not 7"));
  EXPECT_THAT(OpenFailure(-1), HasSubstr("need an arena"));
  EXPECT_THAT(OpenFailure(12345), HasSubstr("not open"));
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_THAT(OpenFailure(null.get()), HasSubstr("no arena"));

  std::uint32_t version = 9;
  const Fd newer = MakeArena(2);
  ASSERT_EQ(::pwrite(newer.get(), &version, 4, 8), 4);
  EXPECT_THAT(OpenFailure(newer.get()), HasSubstr("version 9"));

  std::uint64_t huge = std::uint64_t{1} << 39;
  const Fd lying = MakeArena(2);
  ASSERT_EQ(::pwrite(lying.get(), &huge, 8, 24), 8);
  EXPECT_THAT(OpenFailure(lying.get()), HasSubstr("does not fit its header"));

  const Fd unsealed(::memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 1 << 20), 0);
  EXPECT_THAT(OpenFailure(unsealed.get()), HasSubstr("sealed"));
  ASSERT_EQ(::ftruncate(unsealed.get(), 100), 0);
  ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_THAT(OpenFailure(unsealed.get()), HasSubstr("cut short"));
  EXPECT_FALSE(AbortArena(unsealed.get(), "x"));
}

TEST(HostileArena, LetsARankJoinOnce) {
  const Fd fd = MakeArena(2);
  const auto first = Group::Open({.rank = Rank(0), .world = 2, .arena_fd = fd.get()});
  ASSERT_TRUE(first);
  EXPECT_THAT(OpenFailure(fd.get()), HasSubstr("has joined this arena before"));
}

TEST(Alone, NeedsNoArena) {
  auto group = Group::Open({});
  ASSERT_TRUE(group);
  auto memory = group->Alloc(100);
  ASSERT_TRUE(memory);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 64, 0u);
  const std::span<float> values(reinterpret_cast<float*>(memory->data()), 25);
  values[3] = 5;
  EXPECT_TRUE(group->AllReduce(values, "x"));
  EXPECT_EQ(values[3], 5);
  EXPECT_TRUE(*group->AllOk(true, "ok"));
  EXPECT_FALSE(*group->AllOk(false, "ok"));
  EXPECT_EQ(group->Sequence(), 3u);
}

TEST(Arguments, AreCheckedBeforeAnythingIsSent) {
  const Fd fd = MakeArena(2, 100);
  auto group = Group::Open({.rank = Rank(0), .world = 2, .arena_fd = fd.get()});
  ASSERT_TRUE(group);
  float x = 0;
  const auto code = [](const Status& status) {
    return status ? std::string("ok") : status.error().message();
  };
  EXPECT_THAT(code(group->AllReduceRaw(nullptr, 4, MUSTER_COLL_F32, MUSTER_COLL_SUM, "s")),
              HasSubstr("null"));
  EXPECT_THAT(
      code(group->AllReduceRaw(&x, ~std::size_t{0} / 2, MUSTER_COLL_F64, MUSTER_COLL_SUM, "s")),
      HasSubstr("too large"));
  EXPECT_THAT(code(group->Broadcast({}, Rank(2), "s")), HasSubstr("root 2"));
  EXPECT_FALSE(group->Wait(Pending{.handle = {.ticket = 5}}));
  EXPECT_TRUE(group->Alloc(4000));
  EXPECT_EQ(group->Alloc(4000).error().code(), Code::kExhausted);
  EXPECT_EQ(group->Sequence(), 0u);
}

TEST(Close, WaitsForWhatWasStartedBeforeItGivesTheMemoryBack) {
  const pid_t pid = Spawn([] {
    auto group = Group::Open({.world = 1});  // without an arena: its memory is the group's own
    if (!group) return 1;
    auto memory = group->Alloc(64 << 20);
    if (!memory) return 2;
    const std::span<float> values(reinterpret_cast<float*>(memory->data()), memory->size() / 4);
    for (int i = 0; i < 8; ++i) {
      if (!group->Start(values, "left in flight")) return 3;
    }
    return 0;  // the group goes before the process does
  });
  EXPECT_EQ(Reap(pid), 0);
}

TEST(Close, InAForkedChildLeavesTheParentsMemoryAlone) {
  auto group = Group::Open({.world = 1});
  ASSERT_TRUE(group);
  const auto memory = group->Alloc(1 << 20);
  ASSERT_TRUE(memory);
  const std::span<float> values(reinterpret_cast<float*>(memory->data()), memory->size() / 4);
  std::ranges::fill(values, 2.0f);
  const auto started = group->Start(values, "grads");
  ASSERT_TRUE(started);
  const pid_t pid = Spawn([&] {
    const Group inherited = *std::move(group);
    return 0;
  });
  EXPECT_EQ(Reap(pid), 0);
  ASSERT_TRUE(group->Wait(*started));
  EXPECT_EQ(values[values.size() - 1], 2.0f);
}

}  // namespace
}  // namespace muster::coll
