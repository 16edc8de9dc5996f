#include "coll/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "coll/futex.h"

namespace muster::coll {
namespace {

constexpr char kMagic[8] = {'M', 'U', 'S', 'T', 'C', 'O', 'L', 'L'};
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kRankBytes = 1024;
constexpr std::uint64_t kMaxAllocBytes = std::uint64_t{1} << 40;

std::uint64_t RoundUp(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

}  // namespace

ArenaLayout LayoutOf(std::uint32_t world, std::uint64_t alloc_bytes) {
  ArenaLayout layout;
  if (world == 0 || world > kMaxWorld || alloc_bytes > kMaxAllocBytes || alloc_bytes % kPage != 0)
    return layout;
  layout.staging = layout.ranks + RoundUp(world * kRankBytes, kPage);
  layout.allocations = layout.staging + 2 * kStagingBlock * world;
  layout.total = layout.allocations + world * alloc_bytes;
  return layout;
}

Fd CreateArenaFd(const ArenaOptions& options) {
  const std::uint64_t alloc_bytes = options.alloc_bytes > kMaxAllocBytes
                                        ? ~std::uint64_t{0}
                                        : RoundUp(options.alloc_bytes, kPage);
  const ArenaLayout layout = LayoutOf(options.world, alloc_bytes);
  if (layout.total == 0) {
    errno = EINVAL;
    return Fd();
  }
  Fd fd(::memfd_create("muster-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return fd;
  if (::ftruncate(fd.get(), static_cast<off_t>(layout.total)) < 0) return Fd();
  void* page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED) return Fd();
  auto* header = static_cast<ArenaHeader*>(page);
  std::memcpy(header->magic, kMagic, sizeof kMagic);
  header->version = kArenaVersion;
  header->world = options.world;
  header->generation = options.generation;
  header->alloc_bytes = alloc_bytes;
  header->total_bytes = layout.total;
  ::munmap(page, kPage);
  // A size that cannot change means that no reader can be hit by SIGBUS.
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) return Fd();
  return fd;
}

std::shared_ptr<ArenaMap> ArenaMap::Map(int fd, std::uint32_t world, std::uint64_t generation,
                                        std::string& why) {
  const auto fail = [&](std::string text) {
    why = std::move(text);
    return nullptr;
  };
  struct stat info{};
  if (fd < 0 || ::fstat(fd, &info) < 0) return fail("the arena's descriptor is not open");
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return fail("the descriptor is no arena: not a memfd sealed against shrinking");
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size < kPage) return fail("the arena is cut short: " + std::to_string(size) + " bytes");
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return fail(std::string("map the arena: ") + std::strerror(errno));
  const auto& header = *static_cast<const ArenaHeader*>(mapped);
  const std::uint32_t version = header.version;
  const std::uint32_t arena_world = header.world;
  const std::uint64_t arena_generation = header.generation;
  // Read once: another process could change it between the check and the use.
  const std::uint64_t alloc_bytes = header.alloc_bytes;
  const ArenaLayout layout = LayoutOf(arena_world, alloc_bytes);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
    why = "the descriptor is no arena: wrong magic";
  } else if (version != kArenaVersion) {
    why = "the arena has version " + std::to_string(version) + ", this library knows 1";
  } else if (arena_world != world) {
    why =
        "the arena is for " + std::to_string(arena_world) + " ranks, not " + std::to_string(world);
  } else if (arena_generation != generation) {
    why = "the arena is of generation " + std::to_string(arena_generation) + ", not " +
          std::to_string(generation);
  } else if (layout.total != size || header.total_bytes != size) {
    why = "the arena's size " + std::to_string(size) + " does not fit its header";
  } else {
    return std::shared_ptr<ArenaMap>(
        new ArenaMap(static_cast<std::byte*>(mapped), layout, world, alloc_bytes));
  }
  ::munmap(mapped, size);
  return nullptr;
}

ArenaMap::~ArenaMap() { ::munmap(base_, layout_.total); }

RankState& ArenaMap::rank(std::uint32_t rank) const {
  return *reinterpret_cast<RankState*>(base_ + layout_.ranks + rank * kRankBytes);
}

std::byte* ArenaMap::slot(std::uint32_t rank, std::uint32_t slot) const {
  return base_ + layout_.staging + (std::uint64_t{rank} * 2 + slot) * kStagingBlock;
}

std::byte* ArenaMap::allocations(std::uint32_t rank) const {
  return base_ + layout_.allocations + rank * alloc_bytes_;
}

std::uint64_t ArenaMap::OffsetOf(std::uint32_t rank, const void* buffer,
                                 std::uint64_t bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(allocations(rank));
  const auto at = reinterpret_cast<std::uintptr_t>(buffer);
  if (at < begin || at - begin > alloc_bytes_ || bytes > alloc_bytes_ - (at - begin))
    return kPrivate;
  return at - reinterpret_cast<std::uintptr_t>(base_);
}

std::byte* ArenaMap::BufferOf(std::uint32_t rank, std::uint64_t offset, std::uint64_t bytes) const {
  const std::uint64_t begin = layout_.allocations + rank * alloc_bytes_;
  if (offset < begin || offset - begin > alloc_bytes_ || bytes > alloc_bytes_ - (offset - begin))
    return nullptr;
  return base_ + offset;
}

void FailArena(ArenaHeader& header, muster_coll_status status, const char* text) {
  std::uint32_t none = 0;
  if (header.failure_state.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) {
    header.failure_status = static_cast<std::uint32_t>(status);
    std::size_t n = 0;
    for (; n + 1 < kFailureText && text[n] != '\0'; ++n) header.failure_text[n] = text[n];
    header.failure_text[n] = '\0';
    header.failure_state.store(2, std::memory_order_release);
  }
  // Set even when somebody else holds the reason: they may have died before they came here.
  header.epoch.fetch_or(kFailedBit, std::memory_order_seq_cst);
  FutexWakeAll(header.epoch);
}

bool AbortArenaFd(int fd, const char* reason) {
  const int saved = errno;
  struct stat info{};
  const int seals = fd < 0 ? -1 : ::fcntl(fd, F_GET_SEALS);
  bool done = false;
  if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && ::fstat(fd, &info) == 0 &&
      static_cast<std::uint64_t>(info.st_size) >= kPage) {
    void* page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) {
      auto& header = *static_cast<ArenaHeader*>(page);
      done =
          std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 && header.version == kArenaVersion;
      if (done) FailArena(header, MUSTER_COLL_ABORTED, reason);
      ::munmap(page, kPage);
    }
  }
  errno = saved;
  return done;
}

muster_coll_status FailureOf(const ArenaHeader& header, std::string& text) {
  text.clear();
  if (header.failure_state.load(std::memory_order_acquire) != 2) return MUSTER_COLL_ABORTED;
  text.assign(header.failure_text, ::strnlen(header.failure_text, kFailureText));
  return header.failure_status == MUSTER_COLL_TIMEOUT ? MUSTER_COLL_TIMEOUT : MUSTER_COLL_ABORTED;
}

}  // namespace muster::coll
