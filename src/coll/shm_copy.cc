// Broadcast and all-gather: the collectives that only move bytes.
#include <algorithm>
#include <cstring>

#include "coll/shm_group.h"

namespace muster::coll {

muster_coll_status ShmGroup::Broadcast(void* buffer, const CallSpec& spec) {
  const std::uint64_t bytes = spec.count * SizeOf(spec.type);
  auto* data = static_cast<std::byte*>(buffer);
  if (const auto status = Begin(spec, buffer, bytes); status != MUSTER_COLL_OK) return status;
  // Every rank's slots alternate in step, whether it has data or not.
  const bool send = rank_ == spec.root && call_.buffer == kPrivate;
  Stage(data, send ? std::min(bytes, kStagingBlock) : 0);
  if (const auto status = Agree(); status != MUSTER_COLL_OK) return status;
  const std::uint64_t from = CallOf(spec.root).buffer;
  if (from == kPrivate) return CopyFromRoot(data, bytes, spec.root);
  const std::byte* source = arena_->BufferOf(spec.root, from, bytes);
  if (source == nullptr)
    return Broken(MUSTER_COLL_MISMATCH,
                  "rank " + std::to_string(spec.root) + " published a buffer outside its memory");
  if (rank_ != spec.root && bytes != 0) std::memcpy(data, source, bytes);
  return Meet();
}

muster_coll_status ShmGroup::CopyFromRoot(std::byte* buffer, std::uint64_t bytes,
                                          std::uint32_t root) {
  for (std::uint64_t at = 0; at < bytes; at += kStagingBlock) {
    const std::uint64_t block = std::min(kStagingBlock, bytes - at);
    if (at != 0) {
      Stage(buffer + at, rank_ == root ? block : 0);
      if (const auto status = Meet(); status != MUSTER_COLL_OK) return status;
    }
    if (rank_ != root) std::memcpy(buffer + at, arena_->slot(root, slot_), block);
  }
  return MUSTER_COLL_OK;
}

muster_coll_status ShmGroup::AllGather(const void* send, void* receive, const CallSpec& spec) {
  const std::uint64_t bytes = spec.count * SizeOf(spec.type);
  const auto* from = static_cast<const std::byte*>(send);
  auto* to = static_cast<std::byte*>(receive);
  if (const auto status = Begin(spec, send, bytes); status != MUSTER_COLL_OK) return status;
  if (call_.buffer == kPrivate) Stage(from, std::min(bytes, kStagingBlock));
  if (const auto status = Agree(); status != MUSTER_COLL_OK) return status;
  if (!AllInArena()) {
    if (const auto status = StageLate(from, std::min(bytes, kStagingBlock));
        status != MUSTER_COLL_OK)
      return status;
    return GatherStaged(from, to, bytes);
  }
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    const std::byte* source = arena_->BufferOf(rank, CallOf(rank).buffer, bytes);
    if (source == nullptr)
      return Broken(MUSTER_COLL_MISMATCH,
                    "rank " + std::to_string(rank) + " published a buffer outside its memory");
    // In place, our own part is there already.
    if (source != to + rank * bytes && bytes != 0) std::memcpy(to + rank * bytes, source, bytes);
  }
  return Meet();
}

muster_coll_status ShmGroup::GatherStaged(const std::byte* send, std::byte* receive,
                                          std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += kStagingBlock) {
    const std::uint64_t block = std::min(kStagingBlock, bytes - at);
    if (at != 0) {
      Stage(send + at, block);
      if (const auto status = Meet(); status != MUSTER_COLL_OK) return status;
    }
    for (std::uint32_t rank = 0; rank < world_; ++rank) {
      std::byte* to = receive + rank * bytes + at;
      if (rank != rank_) {
        std::memcpy(to, arena_->slot(rank, slot_), block);
      } else if (to != send + at) {
        std::memmove(to, send + at, block);
      }
    }
  }
  return MUSTER_COLL_OK;
}

}  // namespace muster::coll
