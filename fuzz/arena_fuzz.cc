// The header of a collective arena, as another process may have left it: mapping it succeeds only
// when every part lies inside, and whatever a rank published never leads outside.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/result.h"
#include "coll/arena.h"
#include "coll/call.h"

namespace {

using namespace muster::coll;

/// Buffers that a peer claims to have are refused or inside the peer's memory.
void CheckBuffers(const ArenaMap& arena, std::uint64_t offset, std::uint64_t bytes) {
  for (std::uint32_t rank = 0; rank < arena.world(); ++rank) {
    const std::byte* buffer = arena.BufferOf(rank, offset, bytes);
    if (buffer == nullptr) continue;
    const auto inside = static_cast<std::uint64_t>(buffer - arena.allocations(rank));
    MUSTER_CHECK(buffer >= arena.allocations(rank) && inside <= arena.alloc_bytes() &&
                 bytes <= arena.alloc_bytes() - inside);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const muster::Fd fd = CreateArenaFd({.world = 2, .alloc_bytes = 8192});
  MUSTER_CHECK(fd.valid());
  const std::size_t header = std::min<std::size_t>(size, 512);
  if (header != 0) MUSTER_CHECK(::pwrite(fd.get(), data, header, 0) >= 0);
  std::string why;
  const auto arena = ArenaMap::Map(fd.get(), 2, 1, why);
  if (arena == nullptr) {
    MUSTER_CHECK(!why.empty());
    return 0;
  }
  MUSTER_CHECK(arena->alloc_bytes() == 8192);
  std::string text;
  FailureOf(arena->header(), text);
  MUSTER_CHECK(text.size() <= kFailureText);
  CallRecord record{};
  if (size > header) std::memcpy(&record, data + header, std::min(size - header, sizeof record));
  MUSTER_CHECK(!Describe(record).empty());
  CheckBuffers(*arena, record.buffer, record.count);
  return 0;
}
