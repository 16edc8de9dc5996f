#pragma once
// How much a machine has been in trouble lately: each trouble adds its weight, and what was added
// halves every six hours. 0 is a machine that nothing is known of; from 1 on it is unwell: one
// severe trouble in the last hours, or four of wear at once. Pure; time is given.

#include <chrono>

#include "base/clock.h"

namespace muster::agent::health {

class NodeScore {
 public:
  static constexpr std::chrono::hours kHalfLife{6};
  static constexpr double kUnwell = 0.99;  ///< below 1, so that one severe trouble counts a moment
  static constexpr double kMost = 1000;    ///< a flood does not stay for weeks

  /// An earlier time than the last is taken as the last.
  void Add(double weight, Instant now);
  double At(Instant now) const;
  /// Unwell from `kUnwell` on; well again below a half, so that it does not flicker.
  bool Unwell(Instant now);

 private:
  double score_ = 0;
  Instant time_{};
  bool unwell_ = false;
};

}  // namespace muster::agent::health
