#include <fmt/format.h>

#include <algorithm>

#include "profile/report/page/plot.h"
#include "profile/report/page/sections.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

constexpr std::size_t kMostMarks = 100;

std::string Steps(std::uint64_t first, std::uint64_t last) {
  if (first == last) return "step " + FormatCount(first);
  return fmt::format("steps {}–{}", FormatCount(first), FormatCount(last));
}

double Middle(const LossPoint& point) {
  return (static_cast<double>(point.first_step) + static_cast<double>(point.last_step)) / 2;
}

Scale LossScale(const std::vector<LossPoint>& points) {
  double low = points.front().min;
  double high = points.front().max;
  for (const LossPoint& point : points) {
    low = std::min(low, point.min);
    high = std::max(high, point.max);
  }
  const double room = (high - low) * 0.04;
  // Losses that come near zero are shown from zero on.
  return {low >= 0 && low < high * 0.35 ? 0 : low - room, high + room};
}

void DrawReplaysAndFaults(const RunReport& report, Plot& plot) {
  for (std::size_t i = 0; i < report.replays.size() && i < kMostMarks; ++i) {
    const ReplaySpan& span = report.replays[i];
    plot.Band(static_cast<double>(span.first_step) - 0.5, static_cast<double>(span.last_step) + 0.5,
              "replay",
              fmt::format("{} were run again by generation {}",
                          Steps(span.first_step, span.last_step), span.generation));
  }
  for (std::size_t i = 0; i < report.faults.size() && i < kMostMarks; ++i) {
    const FaultReport& fault = report.faults[i];
    if (fault.step.value_or(0) == 0) continue;
    plot.VerticalLine(static_cast<double>(*fault.step), "fault",
                      fmt::format("rank {} died{}", fault.rank, AtStep(fault)));
  }
}

void DrawLosses(const std::vector<LossPoint>& points, Plot& plot) {
  std::vector<PlotPoint> low;
  std::vector<PlotPoint> high;
  std::vector<PlotPoint> mean;
  std::vector<PlotPoint> smooth;
  for (const LossPoint& point : points) {
    const double x = Middle(point);
    low.push_back({x, point.min});
    high.push_back({x, point.max});
    mean.push_back({x, point.mean});
    smooth.push_back({static_cast<double>(point.last_step), point.smooth});
  }
  plot.Area(low, high, "loss-range");
  plot.Line(mean, "loss-raw");
  plot.Line(smooth, "loss-smooth");
}

void AddTooltips(const std::vector<LossPoint>& points, Plot& plot) {
  for (const LossPoint& point : points) {
    const std::string spread = point.first_step == point.last_step
                                   ? fmt::format("loss {}", FormatNumber(point.mean))
                                   : fmt::format("mean {} ({} to {})", FormatNumber(point.mean),
                                                 FormatNumber(point.min), FormatNumber(point.max));
    plot.Band(static_cast<double>(point.first_step) - 0.5,
              static_cast<double>(point.last_step) + 0.5, "hover",
              fmt::format("{}: {}, smoothed {}", Steps(point.first_step, point.last_step), spread,
                          FormatNumber(point.smooth)));
  }
}

}  // namespace

std::string LossChartHtml(const RunReport& report) {
  const std::vector<LossPoint>& points = report.losses;
  if (points.empty()) return {};
  Plot plot(Scale(static_cast<double>(points.front().first_step) - 1,
                  static_cast<double>(points.back().last_step) + 1),
            LossScale(points),
            {.label = fmt::format("Loss over {} to {}, from {} to {} when smoothed",
                                  Steps(points.front().first_step, points.front().first_step),
                                  FormatCount(points.back().last_step),
                                  FormatNumber(points.front().smooth),
                                  FormatNumber(points.back().smooth)),
             .x_title = "optimizer step",
             .y_title = "training loss",
             .height_px = 260});
  DrawReplaysAndFaults(report, plot);
  DrawLosses(points, plot);
  AddTooltips(points, plot);
  const bool joined = points.back().last_step - points.front().first_step >= points.size();
  std::vector<LegendEntry> legend{
      {"loss-raw", joined ? "mean of neighbouring steps, with their range" : "each step"},
      {"loss-smooth", "smoothed"}};
  if (!report.replays.empty()) legend.push_back({"replay", "steps that were run again"});
  if (!report.faults.empty()) legend.push_back({"fault", "a rank died"});
  std::string out = LegendHtml(legend) + plot.Html();
  if (report.losses_not_finite > 0) {
    out += fmt::format(
        "<p class=\"warn\">{} had a loss that is not a finite number; the curve leaves them "
        "out.</p>",
        Counted(report.losses_not_finite, "step"));
  }
  return Section("Loss", out);
}

}  // namespace muster::profile
