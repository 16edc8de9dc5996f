#include "coll/shm_group.h"

#include <sched.h>
#include <time.h>

#include <cstdio>
#include <utility>

#include "coll/futex.h"

namespace muster::coll {
namespace {

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Spinning pays only while every rank can have a processor of its own; on a shared one it delays
/// the rank that is waited for.
std::uint32_t SpinsFor(std::uint32_t world) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (::sched_getaffinity(0, sizeof cpus, &cpus) < 0) return 0;
  return world <= static_cast<std::uint32_t>(CPU_COUNT(&cpus)) ? 400 : 0;
}

timespec DeadlineAfter(std::uint64_t timeout_ns) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t nanoseconds = static_cast<std::uint64_t>(now.tv_nsec) + timeout_ns % kSecond;
  return {.tv_sec = now.tv_sec + static_cast<time_t>(timeout_ns / kSecond + nanoseconds / kSecond),
          .tv_nsec = static_cast<long>(nanoseconds % kSecond)};
}

bool SameEpoch(std::uint32_t a, std::uint32_t b) { return a / kEpochStep == b / kEpochStep; }

std::string Seconds(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", static_cast<double>(ns) * 1e-9);
  return text;
}

}  // namespace

std::unique_ptr<ShmGroup> ShmGroup::Join(std::shared_ptr<ArenaMap> arena,
                                         const ShmGroupOptions& options, std::string& why) {
  std::uint32_t unclaimed = 0;
  if (!arena->rank(options.rank).claimed.compare_exchange_strong(unclaimed, 1)) {
    why = "rank " + std::to_string(options.rank) +
          " has joined this arena before; a restarted rank needs a new generation's arena";
    return nullptr;
  }
  return std::unique_ptr<ShmGroup>(new ShmGroup(std::move(arena), options));
}

ShmGroup::ShmGroup(std::shared_ptr<ArenaMap> arena, const ShmGroupOptions& options)
    : arena_(std::move(arena)),
      rank_(options.rank),
      world_(arena_->world()),
      timeout_ns_(options.timeout_ns),
      isa_(options.isa),
      spins_(SpinsFor(world_)) {}

void ShmGroup::Leave() {
  ArenaHeader& header = arena_->header();
  // The first to leave is the cause; those that leave because of it are not to be blamed.
  std::uint32_t nobody = 0;
  header.first_left.compare_exchange_strong(nobody, rank_ + 1, std::memory_order_acq_rel);
  header.epoch.fetch_or(kClosedBit, std::memory_order_seq_cst);
  FutexWakeAll(header.epoch);
}

void* ShmGroup::Alloc(std::size_t bytes) {
  const std::uint64_t left = arena_->alloc_bytes() - allocated_;
  if (bytes > left) return nullptr;
  const std::uint64_t rounded = (bytes + 63) / 64 * 64;
  std::byte* memory = arena_->allocations(rank_) + allocated_;
  allocated_ += rounded < left ? rounded : left;
  return memory;
}

muster_coll_status ShmGroup::Barrier(const CallSpec& spec) {
  if (const auto status = Begin(spec, nullptr, 0); status != MUSTER_COLL_OK) return status;
  return Agree();
}

muster_coll_status ShmGroup::Begin(const CallSpec& spec, const void* buffer, std::uint64_t bytes) {
  if (broken_) {
    if (message_.empty()) message_ = "the group failed earlier";
    return MUSTER_COLL_BROKEN;
  }
  const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed) + 1;
  sequence_.store(sequence, std::memory_order_relaxed);
  call_ = MakeRecord(spec, sequence);
  // No meeting will pass any more, and a slow rank may still be reading the record that this one
  // would replace.
  const std::uint32_t epoch = arena_->header().epoch.load(std::memory_order_acquire);
  if ((epoch & kFailedBit) != 0) return Fail(Meeting::kFailed);
  if ((epoch & kClosedBit) != 0) return Fail(Meeting::kPeerLeft);
  if (buffer != nullptr) call_.buffer = arena_->OffsetOf(rank_, buffer, bytes);
  arena_->rank(rank_).calls[sequence % 2] = call_;
  return MUSTER_COLL_OK;
}

const CallRecord& ShmGroup::CallOf(std::uint32_t rank) const {
  return arena_->rank(rank).calls[call_.sequence % 2];
}

muster_coll_status ShmGroup::Agree() {
  if (const auto status = Meet(); status != MUSTER_COLL_OK) return status;
  std::uint32_t alike = 0;
  std::uint32_t odd = 0;  // the first that did not call what rank 0 called
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    alike += SameCall(call_, CallOf(rank)) ? 1 : 0;
    if (odd == 0 && !SameCall(CallOf(0), CallOf(rank))) odd = rank;
  }
  if (alike == world_) return MUSTER_COLL_OK;
  const std::string text = "rank " + std::to_string(odd) + " called " + Describe(CallOf(odd)) +
                           " while rank 0 called " + Describe(CallOf(0));
  if (2 * alike <= world_) return Broken(MUSTER_COLL_MISMATCH, text);
  // Most ranks called this: the fault is another one's, and with it gone we could go on.
  FailArena(arena_->header(), MUSTER_COLL_ABORTED, text.c_str());
  return Fail(Meeting::kFailed);
}

muster_coll_status ShmGroup::Meet() {
  const Meeting meeting = Arrive();
  return meeting == Meeting::kPassed ? MUSTER_COLL_OK : Fail(meeting);
}

ShmGroup::Meeting ShmGroup::Arrive() {
  ArenaHeader& header = arena_->header();
  arena_->rank(rank_).tick.store(++tick_, std::memory_order_relaxed);
  // The epoch cannot move before we arrive, so this is the one that we wait to see pass.
  const std::uint32_t epoch = header.epoch.load(std::memory_order_acquire);
  if ((epoch & kFailedBit) != 0) return Meeting::kFailed;
  if ((epoch & kClosedBit) != 0) return Meeting::kPeerLeft;
  if (header.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < world_) return WaitFor(epoch);
  header.arrived.store(0, std::memory_order_relaxed);
  header.epoch.fetch_add(kEpochStep, std::memory_order_seq_cst);
  if (header.sleepers.load(std::memory_order_seq_cst) != 0) FutexWakeAll(header.epoch);
  return Meeting::kPassed;
}

ShmGroup::Meeting ShmGroup::WaitFor(std::uint32_t epoch) {
  ArenaHeader& header = arena_->header();
  for (std::uint32_t i = 0; i < spins_; ++i) {
    if (header.epoch.load(std::memory_order_acquire) != epoch) break;
    Pause();
  }
  // No sched_yield: on a loaded machine the kernel puts a yielding thread behind everybody's slice,
  // which made random sequences of small calls 20 times slower than sleeping at once.
  timespec deadline{};
  bool timed_out = false;
  for (;;) {
    const std::uint32_t now = header.epoch.load(std::memory_order_acquire);
    // Passed comes first: a peer that left or failed afterwards does not undo this meeting.
    if (!SameEpoch(now, epoch)) return Meeting::kPassed;
    if ((now & kFailedBit) != 0) return Meeting::kFailed;
    if ((now & kClosedBit) != 0) return Meeting::kPeerLeft;
    if (timed_out) return Meeting::kTimedOut;
    if (deadline.tv_sec == 0) deadline = DeadlineAfter(timeout_ns_);
    header.sleepers.fetch_add(1, std::memory_order_seq_cst);
    timed_out = !FutexWaitUntil(header.epoch, now, deadline);
    header.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
}

muster_coll_status ShmGroup::Fail(Meeting meeting) {
  if (meeting == Meeting::kTimedOut) return FailTimeout();
  if (meeting == Meeting::kPeerLeft) {
    // Whatever it left for, it was not our call that was wrong.
    const std::uint32_t left = arena_->header().first_left.load(std::memory_order_acquire) - 1;
    message_ = "rank " + std::to_string(left) + " closed its group while rank " +
               std::to_string(rank_) + " called " + Describe(call_);
    return MUSTER_COLL_ABORTED;
  }
  std::string text;
  const muster_coll_status status = FailureOf(arena_->header(), text);
  if (status == MUSTER_COLL_TIMEOUT) return Broken(status, text);
  // An abort is not our failure: every later call says ABORTED again, not BROKEN.
  message_ = "rank " + std::to_string(rank_) + " gave up " + Describe(call_) +
             " because the group was aborted" + (text.empty() ? "" : ": " + text);
  return MUSTER_COLL_ABORTED;
}

muster_coll_status ShmGroup::FailTimeout() {
  std::string missing;
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    const RankState& state = arena_->rank(rank);
    if (state.tick.load(std::memory_order_relaxed) >= tick_) continue;
    missing += (missing.empty() ? "rank " : ", rank ") + std::to_string(rank);
    if (state.claimed.load(std::memory_order_relaxed) == 0) missing += " (which never joined)";
  }
  if (missing.empty()) missing = "a rank";
  const std::string text = missing + " did not arrive within " + Seconds(timeout_ns_) + " at " +
                           Describe(call_) + ", collective " + std::to_string(call_.sequence) +
                           " of rank " + std::to_string(rank_);
  FailArena(arena_->header(), MUSTER_COLL_TIMEOUT, text.c_str());
  return Broken(MUSTER_COLL_TIMEOUT, text);
}

muster_coll_status ShmGroup::Broken(muster_coll_status status, std::string message) {
  broken_ = true;
  message_ = std::move(message);
  return status;
}

}  // namespace muster::coll
