#pragma once
// The death of the coordinator's process, at any point of what it does: an exception that nothing
// of the coordinator's catches. Its code runs inside of Play only; whoever steps outside of that
// cannot die.

#include <cstdint>
#include <functional>
#include <utility>

#include "agent/simulation/world.h"

namespace muster::agent::simulation {

class Fate {
 public:
  explicit Fate(World& world) : world_(world) {}

  /// Of every step.
  void SetChance(double chance) { chance_ = chance; }
  void Step() {
    if (inside_ && !dead_ && world_.Chance(chance_)) throw Died();
  }

  /// Runs `what` of the coordinator's; false when it is dead, or died of it.
  bool Play(const std::function<void()>& what) {
    if (dead_) return false;
    const bool before = std::exchange(inside_, true);
    try {
      what();
    } catch (const Died&) {
      dead_ = true;
      ++deaths_;
    }
    inside_ = before;
    return !dead_;
  }
  bool dead() const { return dead_; }
  std::uint32_t deaths() const { return deaths_; }
  void Revive() { dead_ = false; }

 private:
  struct Died {};

  World& world_;
  double chance_ = 0;
  bool inside_ = false;
  bool dead_ = false;
  std::uint32_t deaths_ = 0;
};

}  // namespace muster::agent::simulation
