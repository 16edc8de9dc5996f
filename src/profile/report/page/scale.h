#pragma once
// Axes: a linear map from data to the unit square of a chart, and ticks at round numbers. Pure.

#include <cstdint>
#include <string>
#include <vector>

namespace muster::profile {

/// Maps [low, high] to [0, 1]; never degenerate, never NaN.
class Scale {
 public:
  Scale(double low, double high);
  double low() const { return low_; }
  double high() const { return high_; }
  double At(double value) const;

 private:
  double low_;
  double high_;
};

struct Tick {
  double at = 0;  ///< 0 … 1
  std::string label;
};

/// About `count` ticks at multiples of 1, 2, 2.5 or 5 times a power of ten.
std::vector<Tick> NiceTicks(const Scale& scale, int count);

/// The round number at or above `value` where an axis may end.
double NiceCeiling(double value);

}  // namespace muster::profile
