#pragma once
// Learning-rate schedules as pure functions of the step. Warm-up rises linearly from peak / warm-up
// to the peak; then
//   cosine   half a cosine from the peak to `final_fraction` of it at the last step
//            (Loshchilov & Hutter, "SGDR", 2017)
//   wsd      stays, then falls linearly over the last `decay` steps (Hu et al., "MiniCPM", 2024)
//   constant stays.
// Any thread.

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

/// The rate of the optimizer step that follows `finished` ones. Beyond `total` it stays at the end
/// value.
double LearningRate(const Schedule& schedule, std::uint64_t finished);

}  // namespace muster::train
