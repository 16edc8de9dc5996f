#pragma once
// One rank's end of the shared-memory transport. Every collective: publish what is called (and,
// from private memory, the first block of data), meet the others, compare all calls, move data,
// meet again where somebody still reads. A call that fails leaves the group broken.
//
// Two ways of data: buffers that all lie in the arena are reduced in place, each rank writing the
// chunk it owns into every rank's buffer; others go through the staging slots in blocks of 512 KB.
// Slots alternate; between two uses of one slot lies a barrier that its last reader has entered.
//
// Used by one thread at a time (the caller's, or the progress thread while calls are in flight).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coll/arena.h"
#include "coll/call.h"
#include "coll/kernels.h"
#include "coll/muster_coll.h"

namespace muster::coll {

struct ShmGroupOptions {
  std::uint32_t rank = 0;
  std::uint64_t timeout_ns = 600'000'000'000;
  Isa isa = DetectIsa();
};

class ShmGroup {
 public:
  /// Claims the rank in the arena; null, with the reason in `why`, when it is taken.
  static std::unique_ptr<ShmGroup> Join(std::shared_ptr<ArenaMap> arena,
                                        const ShmGroupOptions& options, std::string& why);
  ~ShmGroup() = default;
  ShmGroup(const ShmGroup&) = delete;
  ShmGroup& operator=(const ShmGroup&) = delete;

  muster_coll_status Barrier(const CallSpec& spec);
  muster_coll_status AllReduce(void* buffer, const CallSpec& spec);
  muster_coll_status Broadcast(void* buffer, const CallSpec& spec);
  muster_coll_status AllGather(const void* send, void* receive, const CallSpec& spec);
  void* Alloc(std::size_t bytes);
  /// Tells the others that this rank will not come again.
  void Leave();

  std::uint64_t sequence() const { return sequence_.load(std::memory_order_relaxed); }
  const std::string& message() const { return message_; }

 private:
  enum class Meeting { kPassed, kFailed, kPeerLeft, kTimedOut };

  ShmGroup(std::shared_ptr<ArenaMap> arena, const ShmGroupOptions& options);
  muster_coll_status Begin(const CallSpec& spec, const void* buffer, std::uint64_t bytes);
  muster_coll_status Agree();
  muster_coll_status Meet();
  Meeting Arrive();
  Meeting WaitFor(std::uint32_t epoch);
  muster_coll_status Fail(Meeting meeting);
  muster_coll_status FailTimeout();
  muster_coll_status Broken(muster_coll_status status, std::string message);

  const CallRecord& CallOf(std::uint32_t rank) const;
  bool AllInArena() const;
  bool AnyInArena() const;
  muster_coll_status ReduceInArena(const CallSpec& spec);
  muster_coll_status ReduceStaged(std::byte* buffer, const CallSpec& spec);
  void ReduceWhole(std::byte* block, std::uint64_t count, const CallSpec& spec) const;
  muster_coll_status ReduceOwned(std::byte* block, std::uint64_t count, const CallSpec& spec);
  void Stage(const std::byte* from, std::uint64_t bytes);
  /// After the first meeting: every rank has its first block staged, also those in the arena.
  muster_coll_status StageLate(const std::byte* from, std::uint64_t bytes);
  muster_coll_status CopyFromRoot(std::byte* buffer, std::uint64_t bytes, std::uint32_t root);
  muster_coll_status GatherStaged(const std::byte* send, std::byte* receive, std::uint64_t bytes);

  std::shared_ptr<ArenaMap> arena_;
  const std::uint32_t rank_;
  const std::uint32_t world_;
  const std::uint64_t timeout_ns_;
  const Isa isa_;
  const std::uint32_t spins_;
  std::atomic<std::uint64_t> sequence_{0};
  std::uint64_t tick_ = 0;
  std::uint32_t slot_ = 0;
  std::uint64_t allocated_ = 0;
  CallRecord call_{};  ///< our own, as published
  bool broken_ = false;
  std::string message_;
};

}  // namespace muster::coll
