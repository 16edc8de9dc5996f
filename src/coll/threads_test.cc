// Ranks as threads over one mapping, so that the thread sanitizer sees every access to the arena.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "coll/progress.h"
#include "coll/ranks_test.h"
#include "coll/shm_group.h"

namespace muster::coll {
namespace {

struct Member {
  std::unique_ptr<ShmGroup> group;
  std::unique_ptr<Progress> progress;
};

Member Join(const std::shared_ptr<ArenaMap>& arena, std::uint32_t rank) {
  std::string why;
  Member member;
  member.group = ShmGroup::Join(arena, {.rank = rank, .timeout_ns = 60'000'000'000}, why);
  MUSTER_CHECK(member.group != nullptr);
  member.progress = std::make_unique<Progress>(*member.group);
  return member;
}

/// One random collective, the same on every rank but for the data; false when a result is wrong.
class RandomCalls {
 public:
  RandomCalls(Member& member, std::uint32_t rank, std::uint32_t world, std::uint64_t seed)
      : member_(member), rank_(rank), world_(world), rng_(seed) {
    arena_memory_ = static_cast<float*>(member.group->Alloc(kMost * 4));
  }

  bool Sequence() {
    const std::uint64_t calls = 1 + rng_.Below(4);
    for (std::uint64_t i = 0; i < calls; ++i) {
      if (!One()) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kMost = 3000;

  bool One() {
    const std::uint64_t kind = rng_.Below(5);
    const std::size_t n = rng_.Below(rng_.Below(8) == 0 ? kMost : 60);
    const std::uint64_t seed = rng_.Next64();
    const std::uint64_t where = rng_.Below(4);
    const auto root = static_cast<std::uint32_t>(rng_.Below(world_));
    const bool in_arena = where == 0 || (where == 1 && rank_ % 2 == 0);
    std::vector<float> owned = Values(seed, rank_, n);
    float* data = in_arena ? arena_memory_ : owned.data();
    if (in_arena && n != 0) std::memcpy(data, owned.data(), n * 4);
    CallSpec spec{.operation = Operation::kAllReduce,
                  .count = n,
                  .type = MUSTER_COLL_F32,
                  .root = 0,
                  .site = "random"};
    if (kind == 0) {
      spec = {.operation = Operation::kBarrier, .site = "random"};
      return member_.group->Barrier(spec) == MUSTER_COLL_OK;
    }
    if (kind == 1) {
      spec.operation = Operation::kBroadcast;
      spec.root = root;
      return member_.group->Broadcast(data, spec) == MUSTER_COLL_OK &&
             Same(data, Values(seed, root, n));
    }
    if (kind == 2) return Gather(data, spec, seed);
    if (kind == 3) {
      std::string message;
      const std::uint64_t ticket = member_.progress->Start(data, spec);
      return member_.progress->Wait(ticket, message) == MUSTER_COLL_OK &&
             Same(data, ExpectedSum(seed, world_, n));
    }
    return member_.group->AllReduce(data, spec) == MUSTER_COLL_OK &&
           Same(data, ExpectedSum(seed, world_, n));
  }

  bool Gather(const float* data, CallSpec spec, std::uint64_t seed) {
    spec.operation = Operation::kAllGather;
    std::vector<float> all(spec.count * world_ + 1);
    if (member_.group->AllGather(data, all.data(), spec) != MUSTER_COLL_OK) return false;
    for (std::uint32_t r = 0; r < world_; ++r) {
      if (!Same(all.data() + r * spec.count, Values(seed, r, spec.count))) return false;
    }
    return true;
  }

  static bool Same(const float* data, const std::vector<float>& expected) {
    return expected.empty() || std::memcmp(data, expected.data(), expected.size() * 4) == 0;
  }

  Member& member_;
  std::uint32_t rank_;
  std::uint32_t world_;
  Rng rng_;
  float* arena_memory_ = nullptr;
};

#if defined(__SANITIZE_THREAD__)
constexpr int kSequences = 150;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr int kSequences = 150;
#else
constexpr int kSequences = 1700;
#endif
#else
constexpr int kSequences = 1700;
#endif

TEST(RandomSequences, GiveTheReferenceInEveryWorld) {
  const std::uint64_t seed = ::testing::UnitTest::GetInstance()->random_seed() + 20261129u;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (const std::uint32_t world : {1u, 2u, 3u, 4u, 6u, 8u}) {
    const Fd fd = MakeArena(world, 1 << 20);
    std::string why;
    const auto arena = ArenaMap::Map(fd.get(), world, 1, why);
    ASSERT_NE(arena, nullptr) << why;
    std::atomic<int> wrong{0};
    RunThreads(world, [&](std::uint32_t rank) {
      Member member = Join(arena, rank);
      RandomCalls calls(member, rank, world, seed + world);
      for (int i = 0; i < kSequences && wrong == 0; ++i) {
        if (!calls.Sequence()) {
          wrong = i + 1;
          FailArena(arena->header(), MUSTER_COLL_ABORTED, "a result was wrong");
        }
      }
    });
    EXPECT_EQ(wrong, 0) << "world " << world;
  }
}

TEST(Threads, AbortReachesEveryWaiterAtAnyMoment) {
  for (int round = 0; round < 200; ++round) {
    const Fd fd = MakeArena(3);
    std::string why;
    const auto arena = ArenaMap::Map(fd.get(), 3, 1, why);
    std::atomic<int> aborted{0};
    RunThreads(3, [&](std::uint32_t rank) {
      Member member = Join(arena, rank);
      for (int i = 0;; ++i) {
        if (rank == 2 && i == round % 7) {
          FailArena(arena->header(), MUSTER_COLL_ABORTED, "round over");
          ++aborted;
          return;
        }
        const auto status = member.group->Barrier({.site = "b"});
        if (status == MUSTER_COLL_OK) continue;
        if (status == MUSTER_COLL_ABORTED) ++aborted;
        return;
      }
    });
    ASSERT_EQ(aborted, 3);
  }
}

TEST(Threads, AFullQueueIsExhaustedAndFailuresReachTheirTickets) {
  const Fd fd = MakeArena(2);
  std::string why;
  const auto arena = ArenaMap::Map(fd.get(), 2, 1, why);
  Member member = Join(arena, 0);  // rank 1 never comes
  std::vector<float> values(16);
  const CallSpec spec{.operation = Operation::kAllReduce,
                      .count = values.size(),
                      .type = MUSTER_COLL_F32,
                      .site = "alone"};
  for (std::uint64_t i = 1; i <= 64; ++i) EXPECT_EQ(member.progress->Start(values.data(), spec), i);
  EXPECT_EQ(member.progress->Start(values.data(), spec), 0u);
  FailArena(arena->header(), MUSTER_COLL_ABORTED, "enough");
  std::string message;
  EXPECT_EQ(member.progress->Wait(1, message), MUSTER_COLL_ABORTED);
  EXPECT_EQ(member.progress->Wait(64, message), MUSTER_COLL_ABORTED);
  EXPECT_THAT(message, ::testing::HasSubstr("enough"));
}

}  // namespace
}  // namespace muster::coll
