// The C ABI over ShmGroup and Progress: checks arguments, keeps one order, turns nothing into an
// exception. An allocation that fails ends the process, as everywhere in Muster.
#include "coll/muster_coll.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coll/arena.h"
#include "coll/progress.h"
#include "coll/shm_group.h"

using muster::Fd;
using muster::coll::ArenaMap;
using muster::coll::CallSpec;
using muster::coll::kMaxWorld;
using muster::coll::Operation;
using muster::coll::Progress;
using muster::coll::ShmGroup;
using muster::coll::SizeOf;

namespace {

constexpr std::uint64_t kDefaultTimeout = 600'000'000'000;

struct PrivateMemory {
  void* address = nullptr;
  std::size_t bytes = 0;
};

std::string& OpenError() {
  thread_local std::string text;
  return text;
}

}  // namespace

struct muster_coll_group {
  std::uint32_t world = 1;
  std::uint32_t rank = 0;
  pid_t owner = 0;
  bool alone = false;  ///< a world of 1 without an arena: allocations are ordinary memory
  std::unique_ptr<ShmGroup> core;
  std::unique_ptr<Progress> progress;
  std::vector<PrivateMemory> allocations;
  mutable std::string message;
};

namespace {

muster_coll_status Refuse(muster_coll_group* group, std::string why) {
  group->message = std::move(why);
  return MUSTER_COLL_INVALID;
}

/// What every call checks before anything is sent.
muster_coll_status Check(muster_coll_group* group, const CallSpec& spec, bool has_memory) {
  if (group == nullptr) return MUSTER_COLL_INVALID;
  if (group->owner != ::getpid())
    return Refuse(group, "the group belongs to process " + std::to_string(group->owner) +
                             "; a forked child opens its own");
  const std::uint64_t size = SizeOf(spec.type);
  if (size == 0) return Refuse(group, "the element type does not exist");
  if (spec.reduction < MUSTER_COLL_SUM || spec.reduction > MUSTER_COLL_MIN)
    return Refuse(group, "the reduction does not exist");
  if (spec.root >= group->world)
    return Refuse(group, "root " + std::to_string(spec.root) + " is not below the world's " +
                             std::to_string(group->world) + " ranks");
  if (spec.count > PTRDIFF_MAX / (size * kMaxWorld))
    return Refuse(group, "count " + std::to_string(spec.count) + " is too large");
  if (!has_memory && spec.count != 0) return Refuse(group, "the buffer is null");
  return MUSTER_COLL_OK;
}

/// Runs a synchronous call after everything that was started before it.
template <typename Call>
muster_coll_status RunNow(muster_coll_group* group, Call call) {
  group->progress->Drain();
  const muster_coll_status status = call(*group->core);
  if (status != MUSTER_COLL_OK) group->message = group->core->message();
  return status;
}

muster_coll_status RefuseOpen(std::string why) {
  OpenError() = std::move(why);
  return MUSTER_COLL_INVALID;
}

muster_coll_status OpenOn(std::shared_ptr<ArenaMap> arena, const muster_coll_options& options,
                          muster_coll_group** group) {
  auto made = std::make_unique<muster_coll_group>();
  made->world = options.world;
  made->rank = options.rank;
  made->owner = ::getpid();
  made->alone = options.arena_fd < 0;
  made->core =
      ShmGroup::Join(std::move(arena),
                     {.rank = options.rank,
                      .timeout_ns = options.timeout_ns == 0 ? kDefaultTimeout : options.timeout_ns},
                     OpenError());
  if (made->core == nullptr) return MUSTER_COLL_INVALID;
  made->progress = std::make_unique<Progress>(*made->core);
  *group = made.release();
  return MUSTER_COLL_OK;
}

}  // namespace

int muster_coll_arena_create(uint32_t world, uint64_t bytes_per_rank, uint64_t generation) {
  Fd fd = muster::coll::CreateArenaFd(
      {.world = world, .alloc_bytes = bytes_per_rank, .generation = generation});
  return fd.Release();
}

muster_coll_status muster_coll_arena_abort(int arena_fd, const char* reason) {
  return muster::coll::AbortArenaFd(arena_fd, reason != nullptr ? reason : "")
             ? MUSTER_COLL_OK
             : MUSTER_COLL_INVALID;
}

muster_coll_status muster_coll_open(const muster_coll_options* options, muster_coll_group** group) {
  if (options == nullptr || group == nullptr)
    return RefuseOpen("options or the place for the group is null");
  *group = nullptr;
  if (options->abi_version != MUSTER_COLL_ABI_VERSION)
    return RefuseOpen("the program was built for version " + std::to_string(options->abi_version) +
                      " of the interface, this library has " +
                      std::to_string(MUSTER_COLL_ABI_VERSION));
  if (options->world == 0 || options->world > kMaxWorld || options->rank >= options->world)
    return RefuseOpen("rank " + std::to_string(options->rank) + " of " +
                      std::to_string(options->world) + " is not one of 1 to 64 ranks");
  Fd own;
  int fd = options->arena_fd;
  if (fd < 0) {
    if (options->world != 1) return RefuseOpen("more than one rank need an arena");
    own = muster::coll::CreateArenaFd({.world = 1, .generation = options->generation});
    fd = own.get();
  }
  // The mapping keeps the memory, so the descriptor itself is not needed any longer.
  auto arena = ArenaMap::Map(fd, options->world, options->generation, OpenError());
  if (arena == nullptr) return MUSTER_COLL_INVALID;
  return OpenOn(std::move(arena), *options, group);
}

void muster_coll_close(muster_coll_group* group) {
  const std::unique_ptr<muster_coll_group> owned(group);
  if (group == nullptr) return;
  if (group->owner != ::getpid()) {
    // A forked child's copy: the thread and the rank's place are the parent's.
    Progress::Abandon(std::move(group->progress));
  } else {
    // First, so that a call still in flight gives up instead of waiting for its time-out.
    group->core->Leave();
    group->progress.reset();
  }
  // Last: until it was joined, the thread read and wrote what was started and not waited for.
  for (const PrivateMemory& memory : group->allocations) ::munmap(memory.address, memory.bytes);
}

void* muster_coll_alloc(muster_coll_group* group, size_t bytes) {
  if (group == nullptr || bytes == 0 || bytes > PTRDIFF_MAX) return nullptr;
  if (!group->alone) return group->core->Alloc(bytes);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  group->allocations.push_back({.address = memory, .bytes = bytes});
  return memory;
}

muster_coll_status muster_coll_all_reduce(muster_coll_group* group, void* buffer, size_t count,
                                          muster_coll_type type, muster_coll_op op,
                                          const char* site) {
  const CallSpec spec{.operation = Operation::kAllReduce,
                      .count = count,
                      .type = type,
                      .reduction = op,
                      .site = site};
  if (const auto status = Check(group, spec, buffer != nullptr); status != MUSTER_COLL_OK)
    return status;
  return RunNow(group, [&](ShmGroup& core) { return core.AllReduce(buffer, spec); });
}

muster_coll_status muster_coll_broadcast(muster_coll_group* group, void* buffer, size_t count,
                                         muster_coll_type type, uint32_t root, const char* site) {
  const CallSpec spec{
      .operation = Operation::kBroadcast, .count = count, .type = type, .root = root, .site = site};
  if (const auto status = Check(group, spec, buffer != nullptr); status != MUSTER_COLL_OK)
    return status;
  return RunNow(group, [&](ShmGroup& core) { return core.Broadcast(buffer, spec); });
}

muster_coll_status muster_coll_all_gather(muster_coll_group* group, const void* send, void* receive,
                                          size_t count, muster_coll_type type, const char* site) {
  const CallSpec spec{
      .operation = Operation::kAllGather, .count = count, .type = type, .site = site};
  if (const auto status = Check(group, spec, send != nullptr && receive != nullptr);
      status != MUSTER_COLL_OK)
    return status;
  return RunNow(group, [&](ShmGroup& core) { return core.AllGather(send, receive, spec); });
}

muster_coll_status muster_coll_barrier(muster_coll_group* group, const char* site) {
  const CallSpec spec{.operation = Operation::kBarrier, .site = site};
  if (const auto status = Check(group, spec, true); status != MUSTER_COLL_OK) return status;
  return RunNow(group, [&](ShmGroup& core) { return core.Barrier(spec); });
}

muster_coll_status muster_coll_all_reduce_start(muster_coll_group* group, void* buffer,
                                                size_t count, muster_coll_type type,
                                                muster_coll_op op, const char* site,
                                                muster_coll_handle* handle) {
  const CallSpec spec{.operation = Operation::kAllReduce,
                      .count = count,
                      .type = type,
                      .reduction = op,
                      .site = site};
  if (const auto status = Check(group, spec, buffer != nullptr); status != MUSTER_COLL_OK)
    return status;
  if (handle == nullptr) return Refuse(group, "the place for the handle is null");
  handle->ticket = group->progress->Start(buffer, spec);
  if (handle->ticket != 0) return MUSTER_COLL_OK;
  group->message = "64 all-reduces are in flight, or no thread can be made; wait for one first";
  return MUSTER_COLL_EXHAUSTED;
}

muster_coll_status muster_coll_wait(muster_coll_group* group, muster_coll_handle handle) {
  const CallSpec nothing;
  if (const auto status = Check(group, nothing, true); status != MUSTER_COLL_OK) return status;
  return group->progress->Wait(handle.ticket, group->message);
}

uint64_t muster_coll_sequence(const muster_coll_group* group) {
  return group == nullptr ? 0 : group->core->sequence();
}

const char* muster_coll_message(const muster_coll_group* group) {
  return group == nullptr ? "" : group->message.c_str();
}

const char* muster_coll_open_message(void) { return OpenError().c_str(); }
