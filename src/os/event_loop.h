#pragma once
// One thread that waits for descriptors and timers (epoll, timerfd) and calls back. Everything is
// used from that one thread, except Post and Stop, which any thread may call. A callback may add,
// change and remove whatever it likes, itself included: an event that was already fetched for a
// removed watch is dropped, even when its descriptor's number is in use again.
//
// Level-triggered: what a callback leaves unread brings it back. Due timers run in the order of
// their times, after the descriptors of the same turn.
//
// A loop on a FakeClock does not wait: with nothing to do its clock jumps to the next timer, so a
// simulation of hours takes milliseconds.

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/strong_id.h"

namespace muster::os {

using WatchId = StrongId<struct WatchTag, std::uint64_t>;
using TimerId = StrongId<struct TimerTag, std::uint64_t>;

class EventLoop {
 public:
  /// Gets the epoll events that came (EPOLLIN, EPOLLHUP …).
  using OnReady = std::function<void(std::uint32_t events)>;
  using Task = std::function<void()>;

  static Result<std::unique_ptr<EventLoop>> Create();
  /// `time` outlives the loop.
  static Result<std::unique_ptr<EventLoop>> Create(FakeClock& time);
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Calls `ready` when `fd` has one of `events`, an error or a hang-up. `fd` stays the caller's
  /// and must be removed before it is closed. Denied for descriptors that are always ready (plain
  /// files).
  Result<WatchId> Watch(int fd, std::uint32_t events, OnReady ready);
  Status Change(WatchId watch, std::uint32_t events);
  void Remove(WatchId watch);  ///< unknown or removed ones are fine

  /// What timers are held against.
  Instant Now() const { return fake_ == nullptr ? MonotonicClock::now() : fake_->Now(); }
  TimerId At(Instant when, Task task);                       ///< runs once, not before `when`
  TimerId After(std::chrono::nanoseconds delay, Task task);  ///< any delay; it cannot overflow
  void Remove(TimerId timer);

  /// Runs `task` in the loop's thread, in its next turn. Any thread.
  void Post(Task task);
  /// Makes Run return after the current turn. Any thread; before Run too.
  void Stop();

  Status Run();
  /// When something of its own is due: its first timer, or now.
  Instant NextDue() const;
  /// One turn: waits at most `timeout` for something and calls back.
  Status RunOnce(std::chrono::nanoseconds timeout);

 private:
  struct Watched {
    int fd;
    OnReady ready;
  };
  EventLoop(Fd epoll, Fd timer, Fd wake);
  Status AddInternal(int fd, std::uint64_t id);
  Status SetTimer();
  void Leap(std::chrono::nanoseconds most);
  void RunDueTimers();
  void RunPosted();

  FakeClock* fake_ = nullptr;
  Fd epoll_;
  Fd timer_;
  Fd wake_;
  std::uint64_t next_id_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Watched>> watches_;
  std::map<std::pair<Instant, std::uint64_t>, Task> timers_;
  std::unordered_map<std::uint64_t, Instant> timer_times_;
  mutable Mutex mutex_;
  std::vector<Task> posted_ MUSTER_GUARDED_BY(mutex_);
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::os
