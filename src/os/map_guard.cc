#include "os/map_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"

namespace muster::os {

/// A guarded range, read by the handler while others come and go. Slots are used again and never
/// freed, so the list can be walked at any instant.
struct MapGuard::Slot {
  std::atomic<std::uint64_t> version = 0;  ///< odd while the range changes
  std::atomic<std::uintptr_t> begin = 0;
  std::atomic<std::uintptr_t> end = 0;  ///< 0: free
  std::atomic<std::uintptr_t> lost_at = 0;
  const Slot* next = nullptr;
};

namespace {

using Slot = MapGuard::Slot;

/// What the process has of it; state of the process, as the signal's disposition is.
struct Guards {
  std::atomic<Slot*> first = nullptr;
  struct sigaction before{};  ///< written before the handler is there
  std::uintptr_t page = 0;
  Mutex mutex;
  std::vector<std::unique_ptr<Slot>> slots MUSTER_GUARDED_BY(mutex);
  std::vector<Slot*> free MUSTER_GUARDED_BY(mutex);
};

// Never destroyed: a thread may still read when the program's statics go.
Guards& TheGuards() {
  static Guards& guards = *new Guards;
  return guards;
}
// The handler must not run into the guard of a static's first use.
std::atomic<Guards*> g_guards = nullptr;

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// Empty when the slot is free or changes meanwhile; that of a mapping that is read stays.
Range RangeOf(const Slot& slot) {
  const std::uint64_t version = slot.version.load();
  const Range range{slot.begin.load(), slot.end.load()};
  return version % 2 == 0 && slot.version.load() == version ? range : Range{};
}

/// Zeros in the place of the range from the page of `address` on. The bare system call, as an
/// interceptor of a sanitizer has no place in a signal handler.
bool PutZeros(std::uintptr_t address, std::uintptr_t end, std::uintptr_t page) {
  const std::uintptr_t begin = address / page * page;
  const std::uintptr_t bytes = (end - begin + page - 1) / page * page;
  return ::syscall(SYS_mmap, begin, bytes, PROT_READ,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != -1;
}

bool Mend(const Guards& guards, std::uintptr_t address) {
  for (Slot* slot = guards.first.load(); slot != nullptr; slot = const_cast<Slot*>(slot->next)) {
    const Range range = RangeOf(*slot);
    if (address < range.begin || address >= range.end) continue;
    std::uintptr_t none = 0;
    slot->lost_at.compare_exchange_strong(none, address);
    return PutZeros(address, range.end, guards.page);
  }
  return false;
}

/// To whoever had the signal before.
void PassOn(const struct sigaction& before, int number, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, info, context);
  const int code = info->si_code;
  const bool comes_again = code == BUS_ADRALN || code == BUS_ADRERR || code == BUS_OBJERR;
  if (before.sa_handler == SIG_IGN && !comes_again) return;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    return before.sa_handler(number);
  }
  struct sigaction plain{};
  plain.sa_handler = SIG_DFL;
  ::sigaction(number, &plain, nullptr);
  if (!comes_again) ::raise(number);  // waits until this handler returns
}

extern "C" void OnBusError(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  const Guards& guards = *g_guards.load();
  const bool mended =
      info->si_code == BUS_ADRERR && Mend(guards, reinterpret_cast<std::uintptr_t>(info->si_addr));
  errno = saved;
  if (!mended) PassOn(guards.before, number, info, context);
}

void Install(Guards& guards) {
  guards.page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  g_guards.store(&guards);
  MUSTER_CHECK(::sigaction(SIGBUS, nullptr, &guards.before) == 0);
  struct sigaction ours{};
  ours.sa_sigaction = &OnBusError;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  MUSTER_CHECK(::sigaction(SIGBUS, &ours, nullptr) == 0);
}

void Set(Slot& slot, const Range& range) {
  slot.version.fetch_add(1);
  slot.begin.store(range.begin);
  slot.end.store(range.end);
  slot.lost_at.store(0);
  slot.version.fetch_add(1);
}

Slot* NewSlot(Guards& guards) {
  const MutexLock lock(guards.mutex);
  if (!guards.free.empty()) {
    Slot* slot = guards.free.back();
    guards.free.pop_back();
    return slot;
  }
  guards.slots.push_back(std::make_unique<Slot>());
  guards.free.reserve(guards.slots.size());  // so that giving one back cannot fail
  Slot* slot = guards.slots.back().get();
  slot->next = guards.first.load();
  guards.first.store(slot);
  return slot;
}

}  // namespace

MapGuard::MapGuard(const void* begin, std::size_t bytes) {
  static std::once_flag once;
  Guards& guards = TheGuards();
  std::call_once(once, [&guards] { Install(guards); });
  slot_ = NewSlot(guards);
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  Set(*slot_, {first, first + bytes});
}

MapGuard::MapGuard(MapGuard&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}

MapGuard& MapGuard::operator=(MapGuard&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

MapGuard::~MapGuard() {
  if (slot_ == nullptr) return;
  Set(*slot_, {});
  Guards& guards = TheGuards();
  const MutexLock lock(guards.mutex);
  guards.free.push_back(slot_);
}

bool MapGuard::lost() const {
  if (slot_ == nullptr) return false;
  // What was read before must not be read after the mark.
  std::atomic_thread_fence(std::memory_order_acquire);
  return slot_->lost_at.load(std::memory_order_relaxed) != 0;
}

std::optional<std::size_t> MapGuard::lost_at() const {
  if (!lost()) return std::nullopt;
  return slot_->lost_at.load() - slot_->begin.load();
}

}  // namespace muster::os
