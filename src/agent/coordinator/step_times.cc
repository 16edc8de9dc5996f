#include "agent/coordinator/step_times.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace muster::agent {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kFewSteps = 8;
constexpr std::size_t kPauses = 2;  // so many slow ones of the last 64 say nothing of the next

}  // namespace

/// A step that is done again after a fault replaces what it took before.
void StepTimes::Add(std::uint64_t step, nanoseconds took) {
  Entry& entry = entries_[step % kKept];
  const bool again = entry.step == step && newest_ == step;
  if (again && took <= entry.took) return;
  entry = {step, took};
  newest_ = step;
  limit_.reset();
}

bool StepTimes::Has(std::size_t back) const {
  return back < newest_ && entries_[(newest_ - back) % kKept].step == newest_ - back;
}

nanoseconds StepTimes::Back(std::size_t back) const {
  return entries_[(newest_ - back) % kKept].took;
}

nanoseconds StepTimes::SlowestOf(std::size_t count) const {
  nanoseconds slowest{};
  for (std::size_t back = 0; back < count; ++back) {
    if (Has(back)) slowest = std::max(slowest, Back(back));
  }
  return slowest;
}

std::optional<nanoseconds> StepTimes::Limit() const {
  if (!limit_) limit_ = Measure();
  return *limit_;
}

std::optional<nanoseconds> StepTimes::Measure() const {
  std::vector<nanoseconds> recent;
  recent.reserve(kRecent);
  for (std::size_t back = 0; back < kRecent; ++back) {
    if (Has(back)) recent.push_back(Back(back));
  }
  if (recent.size() < kFewSteps) return std::nullopt;
  std::ranges::nth_element(recent, recent.begin() + kPauses, std::greater<>());
  return std::max(3 * recent[kPauses], SlowestOf(kKept) * 5 / 4);
}

}  // namespace muster::agent
