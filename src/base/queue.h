#pragma once
// A bounded queue between threads: the one way by which work changes its owner. Push waits while it
// is full, Pop while it is empty, each up to a deadline. Close ends it: pushes fail from then on,
// pops drain what is there and then fail, and everybody who waits wakes up. Any thread.

#include <cstddef>
#include <deque>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"

namespace muster {

template <typename T>
class Queue {
 public:
  explicit Queue(std::size_t capacity) : capacity_(capacity) { MUSTER_CHECK(capacity > 0); }

  /// Deadline: still full. Cancelled: closed. In both cases `item` is dropped.
  Status Push(T item, Instant deadline = kNever) {
    MutexLock lock(mutex_);
    while (!closed_ && items_.size() >= capacity_) {
      if (!has_room_.WaitUntil(mutex_, deadline) && items_.size() >= capacity_ && !closed_) {
        return Error(Code::kDeadline, "the queue stayed full");
      }
    }
    if (closed_) return Error(Code::kCancelled, "the queue is closed");
    items_.push_back(std::move(item));
    has_items_.NotifyOne();
    return Ok();
  }

  /// Deadline: still empty. Cancelled: closed and drained.
  Result<T> Pop(Instant deadline = kNever) {
    MutexLock lock(mutex_);
    while (items_.empty()) {
      if (closed_) return Error(Code::kCancelled, "the queue is closed");
      if (!has_items_.WaitUntil(mutex_, deadline) && items_.empty() && !closed_) {
        return Error(Code::kDeadline, "the queue stayed empty");
      }
    }
    T item = std::move(items_.front());
    items_.pop_front();
    has_room_.NotifyOne();
    return item;
  }

  /// No more pushes; what is queued can still be popped.
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
    has_items_.NotifyAll();
    has_room_.NotifyAll();
  }
  /// Close, and drop what is queued. Returns how many were.
  std::size_t Abandon() {
    std::deque<T> dropped;
    {
      MutexLock lock(mutex_);
      closed_ = true;
      dropped.swap(items_);
      has_items_.NotifyAll();
      has_room_.NotifyAll();
    }
    return dropped.size();  // destroyed outside the lock
  }

  std::size_t size() const {
    MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  const std::size_t capacity_;
  mutable Mutex mutex_;
  CondVar has_items_;
  CondVar has_room_;
  std::deque<T> items_ MUSTER_GUARDED_BY(mutex_);
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster
