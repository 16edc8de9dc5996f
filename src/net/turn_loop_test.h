#pragma once
// Turns an event loop in a test until something has happened, at most for ten seconds.

#include <gtest/gtest.h>

#include <chrono>

#include "base/clock.h"
#include "os/event_loop.h"

namespace muster::net {

template <typename Happened>
[[nodiscard]] bool TurnUntil(os::EventLoop& loop, Happened happened,
                             std::chrono::seconds most = std::chrono::seconds(10)) {
  const Instant end = MonotonicClock::now() + most;
  while (!happened()) {
    if (MonotonicClock::now() > end) return false;
    const Status turned = loop.RunOnce(std::chrono::milliseconds(100));
    if (!turned) return false;
  }
  return true;
}

}  // namespace muster::net
