#pragma once
// A mutex that clang checks at compile time (-Wthread-safety): a member marked
// MUSTER_GUARDED_BY(mutex_) is touched under a MutexLock only, or the build fails. For leaves: hold
// it for a few lines, never while calling out. Every wait has a deadline; look at the condition
// again after it, as wakings may be spurious.
//
//   MutexLock lock(mutex_);
//   while (items_.empty()) {
//     if (!filled_.WaitUntil(mutex_, deadline)) return std::nullopt;
//   }

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/clock.h"

#if defined(__clang__)
#define MUSTER_ANNOTATION(x) __attribute__((x))
#else
#define MUSTER_ANNOTATION(x)
#endif
#define MUSTER_CAPABILITY(name) MUSTER_ANNOTATION(capability(name))
#define MUSTER_SCOPED_CAPABILITY MUSTER_ANNOTATION(scoped_lockable)
#define MUSTER_GUARDED_BY(mutex) MUSTER_ANNOTATION(guarded_by(mutex))
#define MUSTER_REQUIRES(...) MUSTER_ANNOTATION(requires_capability(__VA_ARGS__))
#define MUSTER_EXCLUDES(...) MUSTER_ANNOTATION(locks_excluded(__VA_ARGS__))
#define MUSTER_ACQUIRE(...) MUSTER_ANNOTATION(acquire_capability(__VA_ARGS__))
#define MUSTER_RELEASE(...) MUSTER_ANNOTATION(release_capability(__VA_ARGS__))

namespace muster {

class MUSTER_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void Lock() MUSTER_ACQUIRE() { mutex_.lock(); }
  void Unlock() MUSTER_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class MUSTER_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MUSTER_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() MUSTER_RELEASE() { mutex_.Unlock(); }

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  /// False when `deadline` passed. The mutex is held again in either case.
  bool WaitUntil(Mutex& mutex, Instant deadline) MUSTER_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    auto status = std::cv_status::no_timeout;
    if (deadline == kNever) {
      condition_.wait(lock);
    } else {
      // steady_clock is CLOCK_MONOTONIC too, and waits without a detour over wall time.
      status = condition_.wait_until(
          lock, std::chrono::steady_clock::time_point(deadline.time_since_epoch()));
    }
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace muster
