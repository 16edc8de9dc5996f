#include <algorithm>
#include <array>
#include <cstring>

#include "coll/shm_group.h"

namespace muster::coll {
namespace {

/// Up to here every rank reduces the whole block for itself: it reads more, but needs no second
/// meeting. The bits are the same.
constexpr std::uint64_t kWholeBytes = 128ULL * 1024;
constexpr std::uint32_t kWholeWorld = 3;

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The elements that a rank owns: near-equal parts that start on 64 bytes.
Range OwnedBy(std::uint32_t rank, std::uint32_t world, std::uint64_t count, std::uint64_t size) {
  const std::uint64_t line = 64 / size;
  const std::uint64_t lines = (count + line - 1) / line;
  return {.begin = std::min(count, lines * rank / world * line),
          .end = std::min(count, lines * (rank + 1) / world * line)};
}

}  // namespace

muster_coll_status ShmGroup::AllReduce(void* buffer, const CallSpec& spec) {
  const std::uint64_t bytes = spec.count * SizeOf(spec.type);
  auto* data = static_cast<std::byte*>(buffer);
  if (const auto status = Begin(spec, buffer, bytes); status != MUSTER_COLL_OK) return status;
  if (call_.buffer == kPrivate) Stage(data, std::min(bytes, kStagingBlock));
  if (const auto status = Agree(); status != MUSTER_COLL_OK) return status;
  if (AllInArena()) return ReduceInArena(spec);
  if (const auto status = StageLate(data, std::min(bytes, kStagingBlock)); status != MUSTER_COLL_OK)
    return status;
  return ReduceStaged(data, spec);
}

bool ShmGroup::AllInArena() const {
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    if (CallOf(rank).buffer == kPrivate) return false;
  }
  return true;
}

bool ShmGroup::AnyInArena() const {
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    if (CallOf(rank).buffer != kPrivate) return true;
  }
  return false;
}

void ShmGroup::Stage(const std::byte* from, std::uint64_t bytes) {
  slot_ ^= 1;
  if (bytes != 0) std::memcpy(arena_->slot(rank_, slot_), from, bytes);
}

muster_coll_status ShmGroup::StageLate(const std::byte* from, std::uint64_t bytes) {
  if (!AnyInArena()) return MUSTER_COLL_OK;
  if (call_.buffer != kPrivate) Stage(from, bytes);
  return Meet();
}

muster_coll_status ShmGroup::ReduceInArena(const CallSpec& spec) {
  const std::uint64_t size = SizeOf(spec.type);
  const Range owned = OwnedBy(rank_, world_, spec.count, size);
  std::array<std::byte*, kMaxWorld> buffers{};
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    std::byte* buffer = arena_->BufferOf(rank, CallOf(rank).buffer, spec.count * size);
    if (buffer == nullptr)
      return Broken(MUSTER_COLL_MISMATCH,
                    "rank " + std::to_string(rank) + " published a buffer outside its memory");
    buffers[rank] = buffer + owned.begin * size;
  }
  FindKernel(spec.type, spec.reduction, isa_)({.inputs = buffers.data(),
                                               .input_count = world_,
                                               .outputs = buffers.data(),
                                               .output_count = world_,
                                               .count = owned.end - owned.begin});
  return Meet();
}

muster_coll_status ShmGroup::ReduceStaged(std::byte* buffer, const CallSpec& spec) {
  const std::uint64_t size = SizeOf(spec.type);
  const std::uint64_t bytes = spec.count * size;
  for (std::uint64_t at = 0; at < bytes; at += kStagingBlock) {
    const std::uint64_t block = std::min(kStagingBlock, bytes - at);
    if (at != 0) {  // the first one was staged before the ranks compared their calls
      Stage(buffer + at, block);
      if (const auto status = Meet(); status != MUSTER_COLL_OK) return status;
    }
    if (world_ <= kWholeWorld || block * world_ <= kWholeBytes) {
      ReduceWhole(buffer + at, block / size, spec);
    } else if (const auto status = ReduceOwned(buffer + at, block / size, spec);
               status != MUSTER_COLL_OK) {
      return status;
    }
  }
  return MUSTER_COLL_OK;
}

void ShmGroup::ReduceWhole(std::byte* block, std::uint64_t count, const CallSpec& spec) const {
  std::array<const std::byte*, kMaxWorld> inputs{};
  for (std::uint32_t rank = 0; rank < world_; ++rank) inputs[rank] = arena_->slot(rank, slot_);
  inputs[rank_] = block;  // still in our cache, and it spares the slot's lines
  FindKernel(spec.type, spec.reduction, isa_)({.inputs = inputs.data(),
                                               .input_count = world_,
                                               .outputs = &block,
                                               .output_count = 1,
                                               .count = count});
}

muster_coll_status ShmGroup::ReduceOwned(std::byte* block, std::uint64_t count,
                                         const CallSpec& spec) {
  const std::uint64_t size = SizeOf(spec.type);
  const Range owned = OwnedBy(rank_, world_, count, size);
  std::array<const std::byte*, kMaxWorld> inputs{};
  for (std::uint32_t rank = 0; rank < world_; ++rank)
    inputs[rank] = arena_->slot(rank, slot_) + owned.begin * size;
  // Nobody but the owner reads this chunk of any slot, so the result may lie over it.
  std::array<std::byte*, 2> outputs = {arena_->slot(rank_, slot_) + owned.begin * size,
                                       block + owned.begin * size};
  FindKernel(spec.type, spec.reduction, isa_)({.inputs = inputs.data(),
                                               .input_count = world_,
                                               .outputs = outputs.data(),
                                               .output_count = 2,
                                               .count = owned.end - owned.begin});
  if (const auto status = Meet(); status != MUSTER_COLL_OK) return status;
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    if (rank == rank_) continue;
    const Range part = OwnedBy(rank, world_, count, size);
    std::memcpy(block + part.begin * size, arena_->slot(rank, slot_) + part.begin * size,
                (part.end - part.begin) * size);
  }
  return MUSTER_COLL_OK;
}

}  // namespace muster::coll
