#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "profile/report/page/plot.h"
#include "profile/report/page/sections.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

double Middle(const StepTimePoint& point) {
  return (static_cast<double>(point.first_step) + static_cast<double>(point.last_step)) / 2;
}

/// What no phase accounts for.
double Rest(const StepTimePoint& point) {
  return std::max(0.0, point.mean - std::accumulate(point.phase.begin(), point.phase.end(), 0.0));
}

/// The axis ends above nearly all steps; a few very long ones (a save, an evaluation) run out of it
/// and are told in words, or they would flatten everything else.
double TopOf(const StepTimes& times) {
  std::vector<double> tails;
  for (const StepTimePoint& point : times.points) tails.push_back(std::max(point.p95, point.mean));
  const double longest = *std::max_element(tails.begin(), tails.end());
  const auto at = static_cast<std::ptrdiff_t>(static_cast<double>(tails.size() - 1) * 0.9);
  std::nth_element(tails.begin(), tails.begin() + at, tails.end());
  return NiceCeiling(std::min(longest * 1.05, tails[static_cast<std::size_t>(at)] * 1.7));
}

void DrawPhases(const StepTimes& times, Plot& plot) {
  std::vector<PlotPoint> lower;
  for (const StepTimePoint& point : times.points) lower.push_back({Middle(point), 0});
  for (std::size_t phase = 0; phase <= kPhases; ++phase) {
    std::vector<PlotPoint> upper = lower;
    double sum = 0;
    for (std::size_t i = 0; i < upper.size(); ++i) {
      const StepTimePoint& point = times.points[i];
      const double part = phase < kPhases ? point.phase[phase] : Rest(point);
      upper[i].y += part * 1000;
      sum += part;
    }
    if (sum > 0) {
      plot.Area(lower, upper,
                phase < kPhases ? fmt::format("phase p-{}", kPhaseNames[phase]) : "phase p-rest");
    }
    lower = std::move(upper);
  }
}

std::string Tooltip(const StepTimePoint& point) {
  std::string text = point.first_step == point.last_step
                         ? fmt::format("step {}: ", FormatCount(point.first_step))
                         : fmt::format("steps {}–{}: ", FormatCount(point.first_step),
                                       FormatCount(point.last_step));
  text += fmt::format("mean {}, longest {}", FormatSeconds(point.mean), FormatSeconds(point.max));
  for (std::size_t i = 0; i < kPhases; ++i) {
    if (point.phase[i] > 0)
      text += fmt::format("\n{} {}", kPhaseNames[i], FormatSeconds(point.phase[i]));
  }
  return text;
}

std::vector<LegendEntry> Legend(const StepTimes& times) {
  std::vector<LegendEntry> legend;
  double whole = 0;
  double rest = 0;
  for (const StepTimePoint& point : times.points) rest += Rest(point);
  for (const double phase : times.phase) whole += phase;
  rest /= static_cast<double>(times.points.size());
  whole += rest;
  for (std::size_t i = 0; i < kPhases; ++i) {
    if (times.phase[i] <= 0) continue;
    legend.push_back({fmt::format("p-{}", kPhaseNames[i]),
                      fmt::format("{} {:.0f} %", kPhaseNames[i], 100 * times.phase[i] / whole)});
  }
  if (rest > 0)
    legend.push_back({"p-rest", fmt::format("unattributed {:.0f} %", 100 * rest / whole)});
  legend.push_back({"tail", "95th percentile"});
  legend.push_back({"median", fmt::format("median {}", FormatSeconds(times.median))});
  return legend;
}

}  // namespace

std::string StepTimeChartHtml(const RunReport& report) {
  const StepTimes& times = report.train_times;
  if (times.points.empty()) return {};
  const double top = TopOf(times);
  Plot plot(Scale(static_cast<double>(times.points.front().first_step) - 1,
                  static_cast<double>(times.points.back().last_step) + 1),
            Scale(0, top * 1000),
            {.label = fmt::format("Step times by phase; the median is {}, 95 percent are within {}",
                                  FormatSeconds(times.median), FormatSeconds(times.p95)),
             .x_title = "optimizer step",
             .y_title = "ms a step, mean of the ranks"});
  DrawPhases(times, plot);
  std::vector<PlotPoint> tail;
  std::uint64_t above = 0;
  for (const StepTimePoint& point : times.points) {
    tail.push_back({Middle(point), point.p95 * 1000});
    if (std::max(point.p95, point.mean) > top) ++above;
  }
  plot.Line(tail, "tail");
  plot.HorizontalLine(times.median * 1000, "median",
                      fmt::format("median {}", FormatSeconds(times.median)));
  for (const StepTimePoint& point : times.points) {
    plot.Band(static_cast<double>(point.first_step) - 0.5,
              static_cast<double>(point.last_step) + 0.5, "hover", Tooltip(point));
  }
  std::string out = LegendHtml(Legend(times)) + plot.Html();
  if (above > 0) {
    out += fmt::format(
        "<p class=\"fine\">The chart is cut at its top in {}; the longest step took {}.</p>",
        Counted(above, "place"), FormatSeconds(times.max));
  }
  if (report.evaluating > 0) {
    out += fmt::format("<p class=\"fine\">Evaluation, {} in all, is left out here.</p>",
                       FormatSeconds(report.evaluating));
  }
  return Section("Step time", out);
}

}  // namespace muster::profile
