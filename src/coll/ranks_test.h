#pragma once
// For the tests of coll: runs ranks as real processes or as threads over one mapping, and the
// scalar reference that every result is held against bit for bit.

#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/rng.h"
#include "coll/arena.h"
#include "coll/group.h"

namespace muster::coll {

/// The definition of the order: the left subtree has the largest power of two below n.
inline float TreeSum(std::span<const float> values) {
  if (values.size() == 1) return values[0];
  const std::size_t left = std::bit_floor(values.size() - 1);
  return TreeSum(values.first(left)) + TreeSum(values.subspan(left));
}

/// What rank `rank` holds at `i`: the bits of sums depend on the order of such values.
inline float ValueOf(std::uint64_t seed, std::uint32_t rank, std::size_t i) {
  // splitmix64: cheap enough for a build without optimisation.
  std::uint64_t bits = seed + (rank * 0x100000001b3u + i + 1) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  bits ^= bits >> 31;
  const int exponent = static_cast<int>(bits % 20) - 10;
  return std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits >> 32)) * 0x1p-31f, exponent);
}

inline std::vector<float> Values(std::uint64_t seed, std::uint32_t rank, std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = ValueOf(seed, rank, i);
  return values;
}

inline std::vector<float> ExpectedSum(std::uint64_t seed, std::uint32_t world, std::size_t n) {
  std::vector<float> sums(n);
  float column[kMaxWorld];
  for (std::size_t i = 0; i < n; ++i) {
    for (std::uint32_t r = 0; r < world; ++r) column[r] = ValueOf(seed, r, i);
    sums[i] = TreeSum(std::span<const float>(column, world));
  }
  return sums;
}

inline Fd MakeArena(std::uint32_t world, std::uint64_t bytes_per_rank = 0,
                    std::uint64_t generation = 1) {
  return CreateArenaFd({.world = world, .alloc_bytes = bytes_per_rank, .generation = generation});
}

/// A child process that runs `body` and exits with its value; 99 when it could not be made.
inline pid_t Spawn(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::_exit(body());
}

inline int Reap(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return 99;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Runs `body(group)` in a process a rank and returns the exit codes, in order of rank.
inline std::vector<int> RunProcesses(int fd, std::uint32_t world,
                                     const std::function<int(Group&)>& body,
                                     std::uint64_t timeout_ns = 60'000'000'000) {
  std::vector<pid_t> pids;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    pids.push_back(Spawn([&] {
      auto group = Group::Open(
          {.rank = Rank(rank), .world = world, .arena_fd = fd, .timeout_ns = timeout_ns});
      if (!group) {
        std::fprintf(stderr, "rank %u: %s\n", rank, group.error().message().c_str());
        return 98;
      }
      return body(*group);
    }));
  }
  std::vector<int> codes;
  for (const pid_t pid : pids) codes.push_back(Reap(pid));
  return codes;
}

/// Runs `body(rank)` in a thread a rank.
inline void RunThreads(std::uint32_t world, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace muster::coll
