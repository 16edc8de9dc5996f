#include "os/wait_fd.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/clock.h"

namespace muster::os {

Result<bool> WaitFd(int fd, short events, std::chrono::nanoseconds timeout) {
  // A century is for ever, and added to now it does not overflow.
  constexpr std::chrono::nanoseconds kForever = std::chrono::hours(24 * 36500);
  const Instant deadline = MonotonicClock::now() + std::min(timeout, kForever);
  for (;;) {
    const auto left = std::max(deadline - MonotonicClock::now(), std::chrono::nanoseconds(0));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec wait{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    const int ready = ::ppoll(&entry, 1, &wait, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return ErrnoError("poll", errno);
    return ready > 0;
  }
}

void DrainFd(int fd) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto n = ::read(fd, &count, sizeof(count));
}

}  // namespace muster::os
