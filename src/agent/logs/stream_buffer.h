#pragma once
// The bounded memory between a worker's pipe and its log file: the newest `capacity` bytes. When
// the file cannot keep up, the oldest chunk goes and is counted; the pipe's reader never waits. The
// last 64 KiB are kept beside it for the fault record, whatever became of the rest.
//
// One reader thread appends, one writer thread takes; a leaf lock between them.

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace muster::agent {

inline constexpr Bytes kStreamCapacity = 8_MiB;
inline constexpr Bytes kTailBytes = 64_KiB;

class StreamBuffer {
 public:
  explicit StreamBuffer(Bytes capacity = kStreamCapacity) : capacity_(capacity) {}

  struct Chunk {
    Instant at{};  ///< when its first byte came
    std::string bytes;
  };
  struct Taken {
    std::uint64_t dropped = 0;  ///< bytes lost in front of `chunks`
    std::deque<Chunk> chunks;
    bool ended = false;  ///< nothing follows
  };

  /// `bytes`, which came at `at`, are at most the capacity. Small pieces that came within
  /// kLogMarkTime are put together, so that a worker that writes byte by byte costs its bytes and
  /// not an object each.
  void Append(std::string bytes, Instant at = {});
  void End();
  Taken Take();
  /// Something came since the last Take; without the lock.
  bool has_news() const { return news_.load(std::memory_order_acquire); }
  std::string Tail() const;
  bool ended() const;
  /// Waits for End, at most until `deadline`.
  void AwaitEnd(Instant deadline) const;

 private:
  mutable Mutex mutex_;
  mutable CondVar end_;
  const Bytes capacity_;
  std::deque<Chunk> chunks_ MUSTER_GUARDED_BY(mutex_);
  std::int64_t held_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t dropped_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::string tail_ MUSTER_GUARDED_BY(mutex_);
  bool ended_ MUSTER_GUARDED_BY(mutex_) = false;
  std::atomic<bool> news_ = true;
};

}  // namespace muster::agent
