#include "coll/group.h"

#include <cerrno>
#include <utility>

namespace muster::coll {
namespace {

Code CodeOf(muster_coll_status status) {
  switch (status) {
    case MUSTER_COLL_INVALID:
      return Code::kInvalid;
    case MUSTER_COLL_MISMATCH:
      return Code::kConflict;
    case MUSTER_COLL_ABORTED:
      return Code::kCancelled;
    case MUSTER_COLL_TIMEOUT:
      return Code::kDeadline;
    case MUSTER_COLL_EXHAUSTED:
      return Code::kExhausted;
    case MUSTER_COLL_BROKEN:
      return Code::kPrecondition;
    case MUSTER_COLL_OK:
      break;
  }
  return Code::kBug;
}

}  // namespace

Result<Group> Group::Open(const GroupOptions& options) {
  const muster_coll_options raw{.abi_version = MUSTER_COLL_ABI_VERSION,
                                .rank = options.rank.value(),
                                .world = options.world,
                                .arena_fd = options.arena_fd,
                                .generation = options.generation.value(),
                                .timeout_ns = options.timeout_ns};
  muster_coll_group* group = nullptr;
  if (const auto status = muster_coll_open(&raw, &group); status != MUSTER_COLL_OK)
    return Error(CodeOf(status),
                 std::string("join the collectives: ") + muster_coll_open_message());
  return Group(group, options);
}

Group::Group(muster_coll_group* group, const GroupOptions& options)
    : group_(group), rank_(options.rank), world_(options.world) {}

Group::Group(Group&& other) noexcept
    : group_(std::exchange(other.group_, nullptr)), rank_(other.rank_), world_(other.world_) {}

Group& Group::operator=(Group&& other) noexcept {
  if (this == &other) return *this;
  muster_coll_close(group_);
  group_ = std::exchange(other.group_, nullptr);
  rank_ = other.rank_;
  world_ = other.world_;
  return *this;
}

Group::~Group() { muster_coll_close(group_); }

Status Group::Check(muster_coll_status status) const {
  if (status == MUSTER_COLL_OK) return Ok();
  return Error(CodeOf(status), muster_coll_message(group_));
}

Status Group::AllReduce(std::span<float> buffer, const char* site) {
  return AllReduceRaw(buffer.data(), buffer.size(), MUSTER_COLL_F32, MUSTER_COLL_SUM, site);
}

Status Group::AllReduceDouble(std::span<double> buffer, const char* site) {
  return AllReduceRaw(buffer.data(), buffer.size(), MUSTER_COLL_F64, MUSTER_COLL_SUM, site);
}

Status Group::AllReduceRaw(void* buffer, std::size_t count, muster_coll_type type,
                           muster_coll_op op, const char* site) {
  return Check(muster_coll_all_reduce(group_, buffer, count, type, op, site));
}

Status Group::Broadcast(std::span<std::byte> buffer, Rank root, const char* site) {
  return Check(muster_coll_broadcast(group_, buffer.data(), buffer.size(), MUSTER_COLL_U8,
                                     root.value(), site));
}

Status Group::AllGather(std::span<const std::byte> send, std::span<std::byte> receive,
                        const char* site) {
  if (receive.size() != send.size() * world_)
    return Error(Code::kInvalid, "all_gather of " + std::to_string(send.size()) + " bytes by " +
                                     std::to_string(world_) + " ranks into " +
                                     std::to_string(receive.size()));
  return Check(muster_coll_all_gather(group_, send.data(), receive.data(), send.size(),
                                      MUSTER_COLL_U8, site));
}

Status Group::Barrier(const char* site) { return Check(muster_coll_barrier(group_, site)); }

Result<bool> Group::AllOk(bool ok, const char* site) {
  std::uint8_t all = ok ? 1 : 0;
  MUSTER_TRY(AllReduceRaw(&all, 1, MUSTER_COLL_U8, MUSTER_COLL_MIN, site));
  return all != 0;
}

Result<Pending> Group::Start(std::span<float> buffer, const char* site) {
  Pending pending;
  MUSTER_TRY(
      Check(muster_coll_all_reduce_start(group_, buffer.data(), buffer.size(), MUSTER_COLL_F32,
                                         MUSTER_COLL_SUM, site, &pending.handle)));
  return pending;
}

Status Group::Wait(Pending pending) { return Check(muster_coll_wait(group_, pending.handle)); }

Result<std::span<std::byte>> Group::Alloc(std::size_t bytes) {
  void* memory = muster_coll_alloc(group_, bytes);
  if (memory == nullptr)
    return Error(Code::kExhausted,
                 std::to_string(bytes) + " bytes do not fit into the rank's part of the arena",
                 "make the arena larger when it is created");
  return std::span<std::byte>(static_cast<std::byte*>(memory), bytes);
}

std::uint64_t Group::Sequence() const { return muster_coll_sequence(group_); }

Status AbortArena(int arena_fd, const char* reason) {
  if (muster_coll_arena_abort(arena_fd, reason) == MUSTER_COLL_OK) return Ok();
  return Error(Code::kInvalid, "descriptor " + std::to_string(arena_fd) + " is no arena");
}

Result<int> CreateArena(std::uint32_t world, std::uint64_t bytes_per_rank, Generation generation) {
  const int fd = muster_coll_arena_create(world, bytes_per_rank, generation.value());
  if (fd < 0) return ErrnoError("create the arena of " + std::to_string(world) + " ranks", errno);
  return fd;
}

}  // namespace muster::coll
