#include "profile/report/page/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profile/report/text.h"

namespace muster::profile {
namespace {

constexpr double kSteps[] = {1, 2, 2.5, 5, 10};

double NiceStep(double rough) {
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : kSteps) {
    if (step * power >= rough * (1 - 1e-9)) return step * power;
  }
  return 10 * power;
}

/// Digits behind the point that tell neighbouring ticks apart.
int DigitsFor(double step) {
  for (int digits = 0; digits < 9; ++digits) {
    const double scaled = step * std::pow(10, digits);
    if (std::abs(scaled - std::round(scaled)) < 1e-6 * scaled) return digits;
  }
  return 9;
}

std::string TickLabel(double value, double step) {
  if (step >= 1e6 || step < 1e-8) return fmt::format("{:.3g}", value);
  std::string text = fmt::format("{:.{}f}", value, DigitsFor(step));
  if (text.find('.') != std::string::npos || std::abs(value) < 10'000) return text;
  return GroupThousands(text);
}

}  // namespace

Scale::Scale(double low, double high) : low_(low), high_(high) {
  if (!std::isfinite(low_) || !std::isfinite(high_) || std::abs(high_) > 1e300 ||
      std::abs(low_) > 1e300) {
    low_ = 0;
    high_ = 1;
  }
  if (high_ - low_ <= std::abs(high_) * 1e-12) high_ = low_ + std::max(1e-9, std::abs(low_) * 0.1);
}

double Scale::At(double value) const {
  if (!std::isfinite(value)) return 0;
  return std::clamp((value - low_) / (high_ - low_), 0.0, 1.0);
}

std::vector<Tick> NiceTicks(const Scale& scale, int count) {
  const double step = NiceStep((scale.high() - scale.low()) / count);
  std::vector<Tick> ticks;
  const double first = std::ceil(scale.low() / step - 1e-9);
  for (int i = 0; i <= 2 * count + 2; ++i) {
    double value = (first + i) * step;
    if (value > scale.high() + step * 1e-9) break;
    if (std::abs(value) < step * 1e-6) value = 0;
    ticks.push_back({scale.At(value), TickLabel(value, step)});
  }
  return ticks;
}

double NiceCeiling(double value) {
  if (!(value > 0) || value > 1e300) return 1;
  return std::ceil(value / NiceStep(value / 5) - 1e-9) * NiceStep(value / 5);
}

}  // namespace muster::profile
