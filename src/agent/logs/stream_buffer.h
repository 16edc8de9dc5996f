#pragma once
// The bounded memory between a worker's pipe and its log file: the newest `capacity` bytes. When
// the file cannot keep up, the oldest chunk goes and is counted; the pipe's reader never waits. The
// last 64 KiB are kept beside it for the fault record, whatever became of the rest.
//
// One reader thread appends, one writer thread takes; a leaf lock between them.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "base/bytes.h"

namespace muster::agent {

inline constexpr Bytes kStreamCapacity = 8_MiB;
inline constexpr Bytes kTailBytes = 64_KiB;

class StreamBuffer {
 public:
  explicit StreamBuffer(Bytes capacity = kStreamCapacity) : capacity_(capacity) {}

  struct Taken {
    std::uint64_t dropped = 0;  ///< bytes lost in front of `chunks`
    std::deque<std::string> chunks;
    bool ended = false;  ///< nothing follows
  };

  /// `chunk` is at most the capacity.
  void Append(std::string chunk);
  void End();
  Taken Take();
  std::string Tail() const;
  bool ended() const;
  /// Waits for End, at most `limit`.
  void AwaitEnd(std::chrono::nanoseconds limit) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable end_;
  const Bytes capacity_;
  std::deque<std::string> chunks_;
  std::int64_t held_ = 0;
  std::uint64_t dropped_ = 0;
  std::string tail_;
  bool ended_ = false;
};

}  // namespace muster::agent
