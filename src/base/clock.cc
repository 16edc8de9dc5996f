#include "base/clock.h"

#include <fmt/format.h>

#include <ctime>

namespace muster {
namespace {

class RealClock final : public Clock {
 public:
  Instant Now() const override { return MonotonicClock::now(); }
  WallTime Wall() const override {
    return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now());
  }
};

}  // namespace

MonotonicClock::time_point MonotonicClock::now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

const Clock& SystemClock() {
  static const RealClock clock;
  return clock;
}

std::string FormatUtc(WallTime time) {
  const auto millis =
      std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = millis >= 0 ? millis / 1000 : (millis - 999) / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     millis - seconds * 1000);
}

}  // namespace muster
