#pragma once
// The shared memory of one generation's ranks: a sealed memfd, laid out as
// docs/formats/coll-arena.md (version 1) says. Header, a state block a rank, two staging slots a
// rank, and room for muster_coll_alloc.
//
// ArenaMap is a mapping of it; it validates everything that it later relies on, because the fd
// comes from outside. Nothing here waits. Failing the arena is one-way: the first reason stays.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.h"
#include "coll/call.h"
#include "coll/muster_coll.h"

namespace muster::coll {

inline constexpr std::uint32_t kMaxWorld = 64;
inline constexpr std::uint32_t kArenaVersion = 1;
inline constexpr std::uint64_t kStagingBlock = 512ULL * 1024;  ///< one slot; a rank has two
inline constexpr std::size_t kFailureText = 256;

/// `epoch` counts barriers passed in its upper 30 bits, so that a waiter on the word also wakes
/// when one of these is set.
inline constexpr std::uint32_t kFailedBit = 1;
inline constexpr std::uint32_t kClosedBit = 2;  ///< some rank has left for good
inline constexpr std::uint32_t kEpochStep = 4;

struct ArenaHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t world;
  std::uint64_t generation;
  std::uint64_t alloc_bytes;  ///< per rank, a multiple of 4096
  std::uint64_t total_bytes;
  alignas(64) std::atomic<std::uint32_t> epoch;  ///< the futex that everybody waits on
  std::atomic<std::uint32_t> sleepers;           ///< may stay too high after a SIGKILL: harmless
  alignas(64) std::atomic<std::uint32_t> arrived;
  alignas(64) std::atomic<std::uint32_t> first_left;  ///< rank + 1 of the first that closed
  std::atomic<std::uint32_t> failure_state;           ///< 0 none, 1 being written, 2 written
  std::uint32_t failure_status;
  char failure_text[kFailureText];
};
static_assert(sizeof(ArenaHeader) <= 4096 && offsetof(ArenaHeader, epoch) == 64 &&
              offsetof(ArenaHeader, arrived) == 128 && offsetof(ArenaHeader, first_left) == 192 &&
              offsetof(ArenaHeader, failure_text) == 204);

/// Written by its rank only.
struct RankState {
  std::atomic<std::uint32_t> claimed;
  std::uint32_t reserved;
  std::atomic<std::uint64_t> tick;  ///< barriers entered
  alignas(64) CallRecord calls[2];  ///< of even and odd sequence numbers
};
static_assert(sizeof(RankState) <= 1024 && offsetof(RankState, tick) == 8 &&
              offsetof(RankState, calls) == 64);

struct ArenaLayout {
  std::uint64_t ranks = 4096;
  std::uint64_t staging = 0;
  std::uint64_t allocations = 0;
  std::uint64_t total = 0;
};
/// total is 0 when world or alloc_bytes is out of range.
ArenaLayout LayoutOf(std::uint32_t world, std::uint64_t alloc_bytes);

struct ArenaOptions {
  std::uint32_t world = 1;
  std::uint64_t alloc_bytes = 0;  ///< rounded up to pages
  std::uint64_t generation = 1;
};
/// The sealed memfd, or an invalid Fd with errno.
Fd CreateArenaFd(const ArenaOptions& options);

class ArenaMap {
 public:
  /// Null, with the reason in `why`, when the fd is no arena of this world and generation.
  static std::shared_ptr<ArenaMap> Map(int fd, std::uint32_t world, std::uint64_t generation,
                                       std::string& why);
  ~ArenaMap();
  ArenaMap(const ArenaMap&) = delete;
  ArenaMap& operator=(const ArenaMap&) = delete;

  ArenaHeader& header() const { return *reinterpret_cast<ArenaHeader*>(base_); }
  std::uint32_t world() const { return world_; }
  std::uint64_t alloc_bytes() const { return alloc_bytes_; }
  RankState& rank(std::uint32_t rank) const;
  std::byte* slot(std::uint32_t rank, std::uint32_t slot) const;
  std::byte* allocations(std::uint32_t rank) const;
  /// The arena offset of a buffer that lies wholly in `rank`'s allocations, or kPrivate.
  std::uint64_t OffsetOf(std::uint32_t rank, const void* buffer, std::uint64_t bytes) const;
  /// The buffer that another rank published, or null when it does not lie in that rank's
  /// allocations.
  std::byte* BufferOf(std::uint32_t rank, std::uint64_t offset, std::uint64_t bytes) const;

 private:
  ArenaMap(std::byte* base, const ArenaLayout& layout, std::uint32_t world,
           std::uint64_t alloc_bytes)
      : base_(base), layout_(layout), world_(world), alloc_bytes_(alloc_bytes) {}
  std::byte* base_;
  ArenaLayout layout_;
  std::uint32_t world_;
  std::uint64_t alloc_bytes_;
};

/// Marks the arena failed and wakes everybody. Async-signal-safe: no allocation, no lock.
void FailArena(ArenaHeader& header, muster_coll_status status, const char* text);
/// FailArena for who has only the descriptor; false when it is no arena. Async-signal-safe.
bool AbortArenaFd(int fd, const char* reason);
/// What FailArena was told; MUSTER_COLL_ABORTED when the reason is not readable.
muster_coll_status FailureOf(const ArenaHeader& header, std::string& text);

}  // namespace muster::coll
