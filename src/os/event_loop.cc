#include "os/event_loop.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "os/wait_fd.h"
namespace muster::os {
namespace {

// The loop's own descriptors; watches count from kFirstId.
constexpr std::uint64_t kTimerEvent = 0;
constexpr std::uint64_t kWakeEvent = 1;
constexpr std::uint64_t kFirstId = 2;

timespec SpecOf(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
}

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::Create() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoError("epoll_create1", errno);
  Fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) return ErrnoError("timerfd_create", errno);
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoError("eventfd", errno);
  std::unique_ptr<EventLoop> loop(
      new EventLoop(std::move(epoll), std::move(timer), std::move(wake)));
  MUSTER_TRY(loop->AddInternal(loop->timer_.get(), kTimerEvent));
  MUSTER_TRY(loop->AddInternal(loop->wake_.get(), kWakeEvent));
  return loop;
}

Result<std::unique_ptr<EventLoop>> EventLoop::Create(FakeClock& time) {
  auto loop = MUSTER_TRY(Create());
  loop->fake_ = &time;
  return loop;
}

EventLoop::EventLoop(Fd epoll, Fd timer, Fd wake)
    : epoll_(std::move(epoll)),
      timer_(std::move(timer)),
      wake_(std::move(wake)),
      next_id_(kFirstId) {}

Status EventLoop::AddInternal(int fd, std::uint64_t id) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) < 0) {
    return ErrnoError("watch the loop's own descriptor", errno);
  }
  return Ok();
}

Result<WatchId> EventLoop::Watch(int fd, std::uint32_t events, OnReady ready) {
  const std::uint64_t id = next_id_++;
  epoll_event event{.events = events, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) < 0) {
    return ErrnoError(fmt::format("watch descriptor {}", fd), errno);
  }
  watches_[id] = std::make_shared<Watched>(Watched{fd, std::move(ready)});
  return WatchId(id);
}

Status EventLoop::Change(WatchId watch, std::uint32_t events) {
  const auto found = watches_.find(watch.value());
  if (found == watches_.end()) return Error(Code::kNotFound, "the watch was removed");
  epoll_event event{.events = events, .data = {.u64 = watch.value()}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second->fd, &event) < 0) {
    return ErrnoError(fmt::format("watch descriptor {}", found->second->fd), errno);
  }
  return Ok();
}

void EventLoop::Remove(WatchId watch) {
  const auto found = watches_.find(watch.value());
  if (found == watches_.end()) return;
  // Fails only when the descriptor was closed too early, and then it is not watched any more.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second->fd, nullptr);
  watches_.erase(found);
}

TimerId EventLoop::At(Instant when, Task task) {
  const std::uint64_t id = next_id_++;
  timers_.emplace(std::pair(when, id), std::move(task));
  timer_times_.emplace(id, when);
  return TimerId(id);
}

TimerId EventLoop::After(std::chrono::nanoseconds delay, Task task) {
  const Instant now = Now();
  // Three centuries of delay are a way to say never.
  return At(delay < kNever - now ? now + delay : kNever, std::move(task));
}

void EventLoop::Remove(TimerId timer) {
  const auto found = timer_times_.find(timer.value());
  if (found == timer_times_.end()) return;
  timers_.erase({found->second, timer.value()});
  timer_times_.erase(found);
}

void EventLoop::Post(Task task) {
  {
    MutexLock lock(mutex_);
    posted_.push_back(std::move(task));
  }
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the loop is awake anyway.
  [[maybe_unused]] const auto n = ::write(wake_.get(), &one, sizeof(one));
}

void EventLoop::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  Post([] {});
}

Status EventLoop::Run() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (stopped_) {
        stopped_ = false;
        return Ok();
      }
    }
    MUSTER_TRY(RunOnce(std::chrono::hours(1)));
  }
}

Status EventLoop::SetTimer() {
  itimerspec spec{};
  if (!timers_.empty()) {
    // All zero would switch it off; a time that has passed fires at once.
    const auto due = timers_.begin()->first.first.time_since_epoch();
    spec.it_value = SpecOf(std::max(due, std::chrono::nanoseconds(1)));
  }
  if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr) < 0) {
    return ErrnoError("set a timer", errno);
  }
  return Ok();
}

Instant EventLoop::NextDue() const {
  {
    MutexLock lock(mutex_);
    if (!posted_.empty()) return Now();
  }
  return timers_.empty() ? kNever : timers_.begin()->first.first;
}

/// To the next timer, at most `most` on.
void EventLoop::Leap(std::chrono::nanoseconds most) {
  const Instant now = Now();
  const Instant next = NextDue();
  if (next > now) fake_->Advance(std::min(next - now, most));
}

Status EventLoop::RunOnce(std::chrono::nanoseconds timeout) {
  if (fake_ == nullptr) {
    MUSTER_TRY(SetTimer());
  } else {
    Leap(std::exchange(timeout, {}));
  }
  std::array<epoll_event, 64> events{};
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(),
                                 static_cast<int>(std::clamp<std::int64_t>(wait, 0, 3'600'000)));
  if (count < 0 && errno != EINTR) return ErrnoError("epoll_wait", errno);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
    if (id == kTimerEvent) DrainFd(timer_.get());
    if (id == kWakeEvent) DrainFd(wake_.get());
    const auto found = watches_.find(id);
    if (found == watches_.end()) continue;
    // A copy of the pointer keeps the callback alive while it removes itself.
    const std::shared_ptr<Watched> watched = found->second;
    watched->ready(events[static_cast<std::size_t>(i)].events);
  }
  RunDueTimers();
  RunPosted();
  return Ok();
}

void EventLoop::RunDueTimers() {
  // One look at the clock: a timer that sets itself again for now waits for the next turn.
  const Instant now = Now();
  const std::uint64_t newest = next_id_;
  for (auto due = timers_.begin(); due != timers_.end() && due->first.first <= now;
       due = timers_.begin()) {
    if (due->first.second >= newest) break;
    const Task task = std::move(due->second);
    timer_times_.erase(due->first.second);
    timers_.erase(due);
    task();
  }
}

void EventLoop::RunPosted() {
  std::vector<Task> tasks;
  {
    MutexLock lock(mutex_);
    tasks.swap(posted_);
  }
  for (const Task& task : tasks) task();
}

}  // namespace muster::os
