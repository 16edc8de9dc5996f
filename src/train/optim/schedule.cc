#include "train/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace muster::train {

Result<Shape> ParseShape(std::string_view name) {
  if (name == "constant") return Shape::kConstant;
  if (name == "cosine") return Shape::kCosine;
  if (name == "wsd") return Shape::kWsd;
  return Error(Code::kInvalid, "there is no schedule '" + std::string(name) + "'",
               "take constant, cosine or wsd");
}

Status Validate(const Schedule& schedule) {
  if (!(schedule.peak > 0) || !std::isfinite(schedule.peak)) {
    return Error(Code::kInvalid,
                 "the learning rate must be above zero, it is " + std::to_string(schedule.peak));
  }
  if (!(schedule.final_fraction >= 0 && schedule.final_fraction <= 1)) {
    return Error(Code::kInvalid,
                 "the final fraction of the learning rate must be in 0 to 1, it is " +
                     std::to_string(schedule.final_fraction));
  }
  const std::uint64_t decay = schedule.shape == Shape::kWsd ? schedule.decay : 0;
  // Not their sum, which may wrap.
  if (schedule.warm_up > schedule.total || decay > schedule.total - schedule.warm_up) {
    return Error(Code::kInvalid, "a warm-up of " + std::to_string(schedule.warm_up) +
                                     " steps and a decay of " + std::to_string(decay) +
                                     " do not fit a run of " + std::to_string(schedule.total));
  }
  return Ok();
}

double LearningRate(const Schedule& schedule, std::uint64_t finished) {
  const auto real = [](std::uint64_t n) { return static_cast<double>(n); };
  if (finished < schedule.warm_up) {
    return schedule.peak * real(finished + 1) / real(schedule.warm_up);
  }
  const double low = schedule.peak * schedule.final_fraction;
  const std::uint64_t at = std::min(finished, schedule.total);
  switch (schedule.shape) {
    case Shape::kConstant:
      return schedule.peak;
    case Shape::kCosine: {
      const double span = real(std::max<std::uint64_t>(1, schedule.total - schedule.warm_up));
      const double done = real(at - std::min(at, schedule.warm_up)) / span;
      return low + (schedule.peak - low) * 0.5 * (1 + std::cos(std::numbers::pi * done));
    }
    case Shape::kWsd: {
      const std::uint64_t start = schedule.total - schedule.decay;
      if (at <= start || schedule.decay == 0) return schedule.peak;
      return schedule.peak - (schedule.peak - low) * real(at - start) / real(schedule.decay);
    }
  }
  return schedule.peak;
}

}  // namespace muster::train
