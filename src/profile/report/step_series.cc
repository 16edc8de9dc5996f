#include "profile/report/step_series.h"

#include <algorithm>
#include <cmath>

namespace muster::profile {
namespace {

/// Cuts the steps from `first` to `last` into at most `most` ranges of equal width.
class Ranges {
 public:
  Ranges(std::uint64_t first, std::uint64_t last, std::uint64_t most)
      : first_(first), width_((last - first) / most + 1) {}
  std::size_t Of(std::uint64_t step) const {
    return static_cast<std::size_t>((step - first_) / width_);
  }

 private:
  std::uint64_t first_;
  std::uint64_t width_;
};

double Seconds(std::uint32_t microseconds) { return microseconds / 1e6; }

/// The value below which `part` of them are; reorders `values`.
double Quantile(std::vector<std::uint32_t>& values, double part) {
  if (values.empty()) return 0;
  const auto index =
      static_cast<std::ptrdiff_t>(std::lround(part * static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + index, values.end());
  return Seconds(values[static_cast<std::size_t>(index)]);
}

/// Adds up the steps of one range, or of all.
struct Sum {
  std::uint64_t first_step = 0;
  std::uint64_t last_step = 0;
  std::vector<std::uint32_t> totals;
  std::array<double, kPhases> phase{};

  void Add(const StepRow& row) {
    first_step = totals.empty() ? row.step : std::min(first_step, row.step);
    last_step = std::max(last_step, row.step);
    totals.push_back(row.total_us);
    for (std::size_t i = 0; i < kPhases; ++i) phase[i] += Seconds(row.phase_us[i]);
  }
  std::array<double, kPhases> MeanPhases() const {
    std::array<double, kPhases> mean = phase;
    for (double& part : mean) part /= static_cast<double>(std::max<std::size_t>(1, totals.size()));
    return mean;
  }
  StepTimePoint ToPoint() {
    double sum = 0;
    for (const std::uint32_t total : totals) sum += Seconds(total);
    return {.first_step = first_step,
            .last_step = last_step,
            .mean = sum / static_cast<double>(totals.size()),
            .p95 = Quantile(totals, 0.95),
            .max = Seconds(*std::max_element(totals.begin(), totals.end())),
            .phase = MeanPhases()};
  }
};

}  // namespace

std::vector<StepRow> LastRuns(std::vector<StepRow> rows) {
  std::vector<std::size_t> order(rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return rows[a].step == rows[b].step ? a < b : rows[a].step < rows[b].step;
  });
  std::vector<StepRow> steps;
  steps.reserve(rows.size());
  for (const std::size_t i : order) {
    if (!steps.empty() && steps.back().step == rows[i].step) {
      steps.back() = rows[i];
    } else {
      steps.push_back(rows[i]);
    }
  }
  return steps;
}

std::vector<StepRow> FirstRuns(const std::vector<StepRow>& rows) {
  std::vector<StepRow> steps;
  for (const StepRow& row : rows) {
    if (steps.empty() || row.step > steps.back().step) steps.push_back(row);
  }
  return steps;
}

std::vector<StepRow> WithoutEvaluation(std::vector<StepRow> rows) {
  for (StepRow& row : rows) {
    row.total_us -= std::min(row.total_us, row.phase_us[kEvaluation]);
    row.phase_us[kEvaluation] = 0;
  }
  return rows;
}

std::vector<ReplaySpan> FindReplays(const std::vector<StepRow>& rows) {
  std::vector<ReplaySpan> spans;
  std::uint64_t furthest = 0;
  for (const StepRow& row : rows) {
    if (row.step > furthest) {
      furthest = row.step;
      continue;
    }
    const bool goes_on = !spans.empty() && spans.back().generation == row.generation &&
                         spans.back().last_step + 1 == row.step;
    if (goes_on) {
      spans.back().last_step = row.step;
    } else {
      spans.push_back({row.step, row.step, row.generation});
    }
  }
  return spans;
}

std::vector<LossPoint> LossPoints(const std::vector<StepRow>& steps) {
  std::vector<LossPoint> points;
  if (steps.empty()) return points;
  const Ranges ranges(steps.front().step, steps.back().step, kMostPoints);
  // The mean looks back over about a hundredth of the run.
  const double weight = 2.0 / (std::max(10.0, static_cast<double>(steps.size()) / 100) + 1);
  double smooth = 0;
  double known = 0;  // the part of the weights that real losses have; corrects the start
  std::size_t range = 0;
  std::size_t count = 0;
  for (const StepRow& row : steps) {
    if (!std::isfinite(row.loss)) continue;
    smooth += weight * (row.loss - smooth);
    known += weight * (1 - known);
    if (points.empty() || ranges.Of(row.step) != range) {
      range = ranges.Of(row.step);
      count = 0;
      points.push_back({.first_step = row.step, .min = row.loss, .max = row.loss});
    }
    LossPoint& point = points.back();
    ++count;
    point.last_step = row.step;
    point.min = std::min(point.min, row.loss);
    point.max = std::max(point.max, row.loss);
    point.mean += (row.loss - point.mean) / static_cast<double>(count);
    point.smooth = smooth / known;
  }
  return points;
}

StepTimes MeasureSteps(const std::vector<std::vector<StepRow>>& ranks) {
  StepTimes times;
  std::uint64_t first = UINT64_MAX;
  std::uint64_t last = 0;
  for (const auto& steps : ranks) {
    if (steps.empty()) continue;
    first = std::min(first, steps.front().step);
    last = std::max(last, steps.back().step);
  }
  if (first > last) return times;
  const Ranges ranges(first, last, kMostTimePoints);
  std::vector<Sum> sums(ranges.Of(last) + 1);
  Sum all;
  for (const auto& steps : ranks) {
    for (const StepRow& row : steps) {
      sums[ranges.Of(row.step)].Add(row);
      all.Add(row);
    }
  }
  for (Sum& sum : sums) {
    if (!sum.totals.empty()) times.points.push_back(sum.ToPoint());
  }
  times.samples = all.totals.size();
  times.median = Quantile(all.totals, 0.5);
  times.p95 = Quantile(all.totals, 0.95);
  times.max = Seconds(*std::max_element(all.totals.begin(), all.totals.end()));
  times.phase = all.MeanPhases();
  return times;
}

}  // namespace muster::profile
