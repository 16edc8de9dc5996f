#pragma once
// Learning-rate schedules as pure functions of the steps finished. Warm-up rises linearly from
// peak / warm-up to the peak, which its last step has; then
//   cosine   half a cosine from the peak down (Loshchilov & Hutter, "SGDR", 2017), as torch's
//            CosineAnnealingLR with T_max = total − warm_up
//   wsd      stays, then falls linearly (Hu et al., "MiniCPM", 2024), as torch's LinearLR over
//            `decay` steps: the first of them still has the peak
//   constant stays.
// Both fall towards `final_fraction` of the peak, which a step after the last one would have: the
// last step of the run is one short of it, as in torch. Any thread.

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace muster::train {

enum class Shape { kConstant, kCosine, kWsd };
Result<Shape> ParseShape(std::string_view name);  ///< "constant", "cosine", "wsd"

struct Schedule {
  Shape shape = Shape::kCosine;
  double peak = 1e-3;
  std::uint64_t total = 0;    ///< steps of the whole run
  std::uint64_t warm_up = 0;  ///< steps
  std::uint64_t decay = 0;    ///< steps, wsd only
  double final_fraction = 0;
};

/// Invalid, naming the field, when a schedule makes no sense.
Status Validate(const Schedule& schedule);

/// The rate of the optimizer step that follows `finished` ones. From `total` on it is the end
/// value.
double LearningRate(const Schedule& schedule, std::uint64_t finished);

}  // namespace muster::train
