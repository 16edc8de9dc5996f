#pragma once
// The collectives for C++ callers: muster_coll.h with ownership, Result and spans. The semantics
// are those of the C ABI: fixed reduction order over the rank index, every call checked against the
// other ranks', cooperative abort.
//
// One thread a Group. Errors: Conflict when ranks called different operations, Cancelled after an
// abort, Deadline when a rank did not arrive (the message names it), Precondition once the group is
// broken. After any of them the group only closes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "base/strong_id.h"
#include "coll/muster_coll.h"

namespace muster::coll {

struct GroupOptions {
  Rank rank;
  std::uint32_t world = 1;
  int arena_fd = -1;  ///< mapped, the caller keeps it; -1 only for a world of 1
  Generation generation{1};
  std::uint64_t timeout_ns = 0;  ///< 0: 600 s
};

/// An all-reduce in flight; goes into Wait, once.
struct Pending {
  muster_coll_handle handle{};
};

class Group {
 public:
  static Result<Group> Open(const GroupOptions& options);
  Group(Group&& other) noexcept;
  Group& operator=(Group&& other) noexcept;
  ~Group();

  Rank rank() const { return rank_; }
  std::uint32_t world() const { return world_; }

  /// Sums in place over all ranks. `site` names the call in a mismatch, e.g. "grads".
  Status AllReduce(std::span<float> buffer, const char* site);
  Status AllReduceDouble(std::span<double> buffer, const char* site);
  /// The same for other types and for MAX and MIN.
  Status AllReduceRaw(void* buffer, std::size_t count, muster_coll_type type, muster_coll_op op,
                      const char* site);
  Status Broadcast(std::span<std::byte> buffer, Rank root, const char* site);
  /// `receive` holds world() × send.size().
  Status AllGather(std::span<const std::byte> send, std::span<std::byte> receive, const char* site);
  Status Barrier(const char* site);
  /// True on every rank when every rank said true.
  Result<bool> AllOk(bool ok, const char* site);

  /// Starts a sum on the progress thread; the buffer belongs to the group until Wait returns. At
  /// most 64 in flight.
  Result<Pending> Start(std::span<float> buffer, const char* site);
  Status Wait(Pending pending);

  /// 64-byte aligned, zeroed memory of this rank in the arena (private memory in a world of 1
  /// without one), valid as long as the group: reduced without a copy.
  Result<std::span<std::byte>> Alloc(std::size_t bytes);

  /// Collectives entered so far, for the heartbeat.
  std::uint64_t Sequence() const;

 private:
  Group(muster_coll_group* group, const GroupOptions& options);
  Status Check(muster_coll_status status) const;

  muster_coll_group* group_ = nullptr;
  Rank rank_;
  std::uint32_t world_ = 1;
};

/// Orders every rank of the arena to give up; any process that holds the fd.
Status AbortArena(int arena_fd, const char* reason);
/// A fresh arena for a generation; the caller owns the fd.
Result<int> CreateArena(std::uint32_t world, std::uint64_t bytes_per_rank, Generation generation);

}  // namespace muster::coll
