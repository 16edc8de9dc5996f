#include "agent/health/node_score.h"

#include <algorithm>
#include <cmath>

namespace muster::agent::health {

double NodeScore::At(Instant now) const {
  const auto age = std::max(now - time_, std::chrono::nanoseconds(0));
  return score_ *
         std::exp2(-std::chrono::duration<double>(age) / std::chrono::duration<double>(kHalfLife));
}

void NodeScore::Add(double weight, Instant now) {
  score_ = std::min(At(now) + std::max(weight, 0.0), kMost);
  time_ = std::max(time_, now);
}

bool NodeScore::Unwell(Instant now) {
  const double score = At(now);
  if (score >= kUnwell) unwell_ = true;
  if (score < kUnwell / 2) unwell_ = false;
  return unwell_;
}

}  // namespace muster::agent::health
