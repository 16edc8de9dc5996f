#pragma once
// Waiting for one descriptor with a deadline, for the few places that have no event loop. Any
// thread; a signal that interrupts the wait does not prolong it.

#include <chrono>

#include "base/result.h"

namespace muster::os {

/// True when `fd` has one of `events` (POLLIN …), an error or a hang-up before `timeout` ran out.
Result<bool> WaitFd(int fd, short events, std::chrono::nanoseconds timeout);

/// Empties a timerfd or eventfd.
void DrainFd(int fd);

}  // namespace muster::os
