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
  /// Of every step, that `strike` is called: something dies beside the process.
  void SetBeside(double chance, std::function<void()> strike) {
    beside_chance_ = chance;
    beside_ = std::move(strike);
  }
  void Step() {
    if (!inside_ || dead_) return;
    if (beside_ && world_.Chance(beside_chance_)) beside_();
    if (world_.Chance(chance_)) throw Died();
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
  /// It is its code that runs: what it calls may throw its death.
  bool inside() const { return inside_ && !dead_; }
  bool dead() const { return dead_; }
  std::uint32_t deaths() const { return deaths_; }
  void Revive() { dead_ = false; }

 private:
  struct Died {};

  World& world_;
  double chance_ = 0;
  double beside_chance_ = 0;
  std::function<void()> beside_;
  bool inside_ = false;
  bool dead_ = false;
  std::uint32_t deaths_ = 0;
};

}  // namespace muster::agent::simulation
