#pragma once
// futex(2) on a word that processes share. Raw system calls, async-signal-safe, errno untouched.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

namespace muster::coll {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

inline void FutexWakeAll(std::atomic<std::uint32_t>& word) {
  const int saved = errno;
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  errno = saved;
}

/// Sleeps while the word is `seen`, until CLOCK_MONOTONIC `deadline`. False: the deadline passed.
inline bool FutexWaitUntil(std::atomic<std::uint32_t>& word, std::uint32_t seen,
                           const timespec& deadline) {
  const int saved = errno;
  const auto result = ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, seen, &deadline, nullptr,
                                FUTEX_BITSET_MATCH_ANY);
  const bool timed_out = result < 0 && errno == ETIMEDOUT;
  errno = saved;
  return !timed_out;
}

}  // namespace muster::coll
