#include <fmt/format.h>

#include <algorithm>

#include "profile/report/page/plot.h"
#include "profile/report/page/sections.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

constexpr std::size_t kMostFaults = 200;
constexpr std::size_t kMostEvals = 50;
constexpr std::size_t kMostDots = 200;

std::string Percent(const std::optional<double>& part) {
  return part ? fmt::format("{:.2f} %", *part * 100) : "–";
}

/// A stage that the next fault cut short cost time too.
std::string Stage(const std::optional<double>& reached, double seconds) {
  return reached || seconds > 0 ? ShortSeconds(seconds) : "–";
}

struct Column {
  std::string_view name;
  std::string_view css;
};
constexpr Column kFaultColumns[] = {
    {"At", ""},      {"Rank", "wide"},  {"Generation", ""}, {"Step", ""},     {"Cause", ""},
    {"Lost", "num"}, {"Detect", "num"}, {"Stop", "num"},    {"Start", "num"}, {"Replay", "num"}};

/// Each cell has its column's name, for screens where a row is not one line.
std::string FaultRow(const FaultReport& fault) {
  const std::string total = fault.survived() ? LostInWords(fault.lost) : "not survived";
  const std::string cells[std::size(kFaultColumns)] = {
      FormatSeconds(fault.died),
      Ranges(DeadRanks(fault), kMostRankRanges),
      FormatCount(fault.generation),
      fault.step ? FormatCount(*fault.step) : "–",
      PlainHtml(fault.exit.empty() ? fault.cause : fault.exit, 60),
      "<b>" + total + "</b>",
      Stage(fault.paused, fault.lost.detect),
      Stage(fault.stopped, fault.lost.stop),
      Stage(fault.stepping, fault.lost.start),
      fault.lost.exact() ? Stage(fault.caught_up, fault.lost.replay) : "not known",
  };
  std::string out = "<tr>";
  for (std::size_t i = 0; i < std::size(cells); ++i) {
    out += fmt::format("<td class=\"{}\" data-name=\"{}\">{}</td>", kFaultColumns[i].css,
                       kFaultColumns[i].name, cells[i]);
  }
  return out + "</tr>";
}

/// About kMostDots of them, evenly, the last one always.
std::vector<PlotPoint> Thin(const std::vector<PlotPoint>& points) {
  if (points.size() <= kMostDots) return points;
  const std::size_t stride = (points.size() + kMostDots - 1) / kMostDots;
  std::vector<PlotPoint> thin;
  for (std::size_t i = (points.size() - 1) % stride; i < points.size(); i += stride) {
    thin.push_back(points[i]);
  }
  return thin;
}

/// The accuracy over the steps, when there are enough points for a line.
std::string AccuracyPlot(const std::vector<EvalRow>& evals) {
  std::vector<PlotPoint> points;
  for (const EvalRow& eval : evals) {
    if (eval.accuracy) points.push_back({static_cast<double>(eval.step), *eval.accuracy * 100});
  }
  if (points.size() < 3) return {};
  points = Thin(points);
  double low = points.front().y;
  double high = low;
  for (const PlotPoint& point : points) {
    low = std::min(low, point.y);
    high = std::max(high, point.y);
  }
  const double room = std::max(1.0, (high - low) * 0.15);
  Plot plot(Scale(0, points.back().x), Scale(low - room, high + room),
            {.label = fmt::format("Accuracy from {:.1f} to {:.1f} percent", points.front().y,
                                  points.back().y),
             .x_title = "optimizer step",
             .y_title = "accuracy, %",
             .height_px = 160,
             .y_ticks = 3});
  plot.Line(points, "accuracy");
  for (const PlotPoint& point : points) {
    plot.Mark(point.x, point.y, "", "dot", fmt::format("step {:.0f}: {:.2f} %", point.x, point.y));
  }
  return plot.Html();
}

}  // namespace

std::string FaultsHtml(const RunReport& report) {
  if (report.faults.empty()) return {};
  std::string out =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Faults\"><table class=\"faults\"><thead><tr>";
  for (const Column& column : kFaultColumns)
    out += fmt::format("<th scope=\"col\" class=\"{}\">{}</th>", column.css, column.name);
  out += "</tr></thead><tbody>";
  for (std::size_t i = 0; i < report.faults.size() && i < kMostFaults; ++i) {
    out += FaultRow(report.faults[i]);
  }
  out += "</tbody></table></div>";
  if (report.faults.size() > kMostFaults) {
    out += fmt::format("<p class=\"fine\">and {} more</p>", report.faults.size() - kMostFaults);
  }
  return Section("Faults", out + FaultNotesHtml(report) + LogTailsHtml(report));
}

std::string EvaluationHtml(const RunReport& report) {
  if (report.evals.empty()) return {};
  const std::vector<EvalRow>& evals = report.evals;
  std::string out = AccuracyPlot(evals);
  out +=
      "<table><thead><tr><th scope=\"col\">Step</th><th scope=\"col\" class=\"num\">Accuracy</th>"
      "<th scope=\"col\" class=\"num\">Loss</th><th scope=\"col\" "
      "class=\"num\">Samples</th></tr></thead><tbody>";
  const std::size_t from = evals.size() > kMostEvals ? evals.size() - kMostEvals : 0;
  for (std::size_t i = from; i < evals.size(); ++i) {
    const EvalRow& eval = evals[i];
    out += fmt::format(
        "<tr><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td "
        "class=\"num\">{}</td></tr>",
        FormatCount(eval.step), Percent(eval.accuracy), eval.loss ? FormatNumber(*eval.loss) : "–",
        FormatCount(eval.samples));
  }
  out += "</tbody></table>";
  if (from > 0)
    out += fmt::format("<p class=\"fine\">the last {} of {}</p>", kMostEvals, evals.size());
  return Section("Evaluation", out);
}

std::string FactsHtml(const RunReport& report) {
  std::string out = "<dl class=\"facts\">";
  const auto fact = [&out](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    out += fmt::format("<dt>{}</dt><dd>{}</dd>", name, PlainHtml(value, 4000));
  };
  const RunFacts& facts = report.facts;
  fact("Command", report.command);
  fact("Ranks", fmt::format("{} on {}", facts.ranks, facts.host));
  fact("Began", facts.created_utc);
  fact("Ended", report.ended_utc);
  if (report.exit_code) fact("Exit code", std::to_string(*report.exit_code));
  fact("Reason", report.reason);
  fact("Restarts", FormatCount(report.restarts));
  if (!report.checkpoints.empty()) {
    fact("Checkpoints", fmt::format("{}, the last of step {}", report.checkpoints.size(),
                                    FormatCount(report.checkpoints.back().step)));
  }
  if (facts.seed) fact("Seed", std::to_string(*facts.seed));
  fact("Muster", facts.version);
  out += "</dl>";
  if (!report.job_yaml.empty()) {
    out += fmt::format(
        "<details open><summary>Configuration</summary><pre class=\"whole\">{}</pre></details>",
        PlainHtml(report.job_yaml, 64 << 10));
  }
  return Section("The job", out);
}

std::string NotesHtml(const RunReport& report) {
  if (report.notes.empty()) return {};
  constexpr std::size_t kMostNotes = 50;
  std::string out = "<ul>";
  for (std::size_t i = 0; i < report.notes.size() && i < kMostNotes; ++i) {
    out += fmt::format("<li>{}</li>", PlainHtml(report.notes[i], 400));
  }
  if (report.notes.size() > kMostNotes) {
    out += fmt::format("<li>and {} more</li>", report.notes.size() - kMostNotes);
  }
  return Section("Notes", out + "</ul>");
}

std::string Section(std::string_view title, const std::string& body) {
  if (body.empty()) return {};
  return fmt::format("<section><h2>{}</h2>{}</section>\n", EscapeHtml(title), body);
}

}  // namespace muster::profile
