#pragma once
// Time comes in as an argument or through Clock, so that a test ticks it. Monotonic time decides;
// wall time is for display only.

#include <chrono>
#include <cstdint>
#include <string>

namespace muster {

/// CLOCK_MONOTONIC: comparable between processes of one host, and the clock of every record in a
/// run folder.
struct MonotonicClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonotonicClock>;
  static constexpr bool is_steady = true;
  static time_point now();
};
using Instant = MonotonicClock::time_point;
/// A deadline that does not come.
inline constexpr Instant kNever = Instant::max();
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
  virtual WallTime Wall() const = 0;
};

/// The machine's clocks. One immutable object for the whole process.
const Clock& SystemClock();

class FakeClock final : public Clock {
 public:
  Instant Now() const override { return now_; }
  WallTime Wall() const override { return wall_; }
  void Advance(std::chrono::nanoseconds by) {
    now_ += by;
    wall_ += by;
  }

 private:
  Instant now_{std::chrono::seconds(1000)};
  WallTime wall_{std::chrono::seconds(1'800'000'000)};
};

/// UTC with milliseconds: "2026-11-29T21:38:14.123Z".
std::string FormatUtc(WallTime time);

}  // namespace muster
