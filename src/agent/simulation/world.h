#pragma once
// What a history stands on: one loop on a clock that jumps, one stream of random numbers, and the
// notes of what happened, of which the last are shown when an invariant breaks. Single-threaded; no
// wall clock, no addresses, no threads, so a seed gives the same history each time.

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/rng.h"
#include "os/event_loop.h"

namespace muster::agent::simulation {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class World {
 public:
  explicit World(std::uint64_t seed);

  os::EventLoop& loop() { return *loop_; }
  const std::shared_ptr<os::EventLoop>& shared_loop() const { return loop_; }
  FakeClock& clock() { return clock_; }
  Instant Now() const { return clock_.Now(); }
  nanoseconds Passed() const { return clock_.Now() - begin_; }

  bool Chance(double probability) { return random_.Uniform() < probability; }
  std::uint64_t Below(std::uint64_t bound) { return random_.Below(bound); }
  /// Short ones are the rule, and `most` happens.
  nanoseconds Delay(nanoseconds least, nanoseconds most);

  void Note(const std::string& what);
  /// An invariant is broken: the first stands, and the history ends.
  void Violate(const std::string& what);
  const std::optional<std::string>& violation() const { return violation_; }
  /// The last of what happened, a line each.
  std::string Story() const;
  /// Of everything that was noted, in order: equal for equal seeds.
  std::uint64_t digest() const { return digest_; }

 private:
  FakeClock clock_;
  const Instant begin_;
  std::shared_ptr<os::EventLoop> loop_;
  Rng random_;
  std::deque<std::string> notes_;
  std::uint64_t digest_ = 0;
  std::optional<std::string> violation_;
};

/// Calls that are due while their maker lives: let go of it and they do not come.
class Lifetime {
 public:
  explicit Lifetime(os::EventLoop& loop) : loop_(loop) {}
  void After(nanoseconds delay, std::function<void()> task) {
    loop_.After(delay, [weak = std::weak_ptr(token_), task = std::move(task)] {
      if (!weak.expired()) task();
    });
  }

 private:
  os::EventLoop& loop_;
  std::shared_ptr<int> token_ = std::make_shared<int>(0);
};

}  // namespace muster::agent::simulation
