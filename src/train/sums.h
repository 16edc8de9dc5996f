#pragma once
// Sums whose order is a fixed binary tree over the index, so that they have the same bits however
// the terms were gathered: ((x0+x1)+(x2+x3))+…; an odd tail joins last. Pure, any thread.

#include <algorithm>
#include <span>
#include <vector>

namespace muster::train {

inline double TreeSum(std::span<const double> terms) {
  if (terms.empty()) return 0;
  std::vector<double> level(terms.begin(), terms.end());
  while (level.size() > 1) {
    const std::size_t pairs = level.size() / 2;
    for (std::size_t i = 0; i < pairs; ++i) level[i] = level[2 * i] + level[2 * i + 1];
    if (level.size() % 2 != 0) level[pairs] = level.back();
    level.resize((level.size() + 1) / 2);
  }
  return level[0];
}

}  // namespace muster::train
