#include <fmt/format.h>

#include <algorithm>

#include "profile/report/page/plot.h"
#include "profile/report/page/sections.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

constexpr std::size_t kMostFaults = 200;
constexpr std::size_t kMostEvals = 50;

std::string Percent(const std::optional<double>& part) {
  return part ? fmt::format("{:.2f} %", *part * 100) : "–";
}

/// A stage that the next fault cut short cost time too.
std::string Stage(const std::optional<double>& reached, double seconds) {
  return reached || seconds > 0 ? FormatSeconds(seconds) : "–";
}

std::string FaultRow(const FaultReport& fault) {
  const std::string total =
      fault.survived() || fault.cut ? FormatSeconds(fault.lost.total()) : "not survived";
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"num\">{}</td><td "
      "class=\"num\">{}</td>"
      "<td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\"><b>{}</b></td></tr>",
      FormatSeconds(fault.died), fault.rank, fault.generation,
      fault.step == 0 ? "–" : FormatCount(fault.step),
      EscapeHtml(fault.exit.empty() ? fault.cause : fault.exit),
      Stage(fault.paused, fault.lost.detect), Stage(fault.stopped, fault.lost.stop),
      Stage(fault.stepping, fault.lost.start), Stage(fault.caught_up, fault.lost.replay), total);
}

/// The accuracy over the steps, when there are enough points for a line.
std::string AccuracyPlot(const std::vector<EvalRow>& evals) {
  std::vector<PlotPoint> points;
  double low = 100;
  double high = 0;
  for (const EvalRow& eval : evals) {
    if (!eval.accuracy) continue;
    points.push_back({static_cast<double>(eval.step), *eval.accuracy * 100});
    low = std::min(low, points.back().y);
    high = std::max(high, points.back().y);
  }
  if (points.size() < 3) return {};
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

std::string LogTailHtml(const LogTail& tail) {
  return fmt::format(
      "<details{}><summary>rank {}, generation {}, the end of {}</summary><pre>{}</pre></details>",
      tail.stream == "stderr" ? " open" : "", tail.rank, tail.generation, EscapeHtml(tail.stream),
      EscapeHtml(PlainText(tail.text)));
}

}  // namespace

std::string FaultsHtml(const RunReport& report) {
  if (report.faults.empty()) return {};
  std::string out =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Faults\"><table><thead><tr>"
      "<th scope=\"col\">At</th><th scope=\"col\">Rank</th><th scope=\"col\">Generation</th><th "
      "scope=\"col\">Step</th>"
      "<th scope=\"col\">Cause</th><th scope=\"col\" class=\"num\">Detect</th><th scope=\"col\" "
      "class=\"num\">Stop</th>"
      "<th scope=\"col\" class=\"num\">Start</th><th scope=\"col\" class=\"num\">Replay</th>"
      "<th scope=\"col\" class=\"num\">Lost</th></tr></thead><tbody>";
  for (std::size_t i = 0; i < report.faults.size() && i < kMostFaults; ++i) {
    out += FaultRow(report.faults[i]);
  }
  out += "</tbody></table></div>";
  if (report.faults.size() > kMostFaults) {
    out += fmt::format("<p class=\"fine\">and {} more</p>", report.faults.size() - kMostFaults);
  }
  for (const LogTail& tail : report.tails) out += LogTailHtml(tail);
  return Section("Faults", out);
}

std::string EvaluationHtml(const RunReport& report) {
  if (report.evals.empty()) return {};
  std::string out = AccuracyPlot(report.evals);
  out +=
      "<table><thead><tr><th scope=\"col\">Step</th><th scope=\"col\" class=\"num\">Accuracy</th>"
      "<th scope=\"col\" class=\"num\">Loss</th><th scope=\"col\" "
      "class=\"num\">Samples</th></tr></thead><tbody>";
  const std::size_t from = report.evals.size() > kMostEvals ? report.evals.size() - kMostEvals : 0;
  for (std::size_t i = from; i < report.evals.size(); ++i) {
    const EvalRow& eval = report.evals[i];
    out += fmt::format(
        "<tr><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td "
        "class=\"num\">{}</td></tr>",
        FormatCount(eval.step), Percent(eval.accuracy), eval.loss ? FormatNumber(*eval.loss) : "–",
        FormatCount(eval.samples));
  }
  out += "</tbody></table>";
  if (from > 0)
    out += fmt::format("<p class=\"fine\">the last {} of {}</p>", kMostEvals, report.evals.size());
  return Section("Evaluation", out);
}

std::string FactsHtml(const RunReport& report) {
  std::string out = "<dl class=\"facts\">";
  const auto fact = [&out](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    out += fmt::format("<dt>{}</dt><dd>{}</dd>", name, EscapeHtml(PlainText(value)));
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
    out += fmt::format("<details open><summary>Configuration</summary><pre>{}</pre></details>",
                       EscapeHtml(CutText(PlainText(report.job_yaml), 64 << 10)));
  }
  return Section("The job", out);
}

std::string NotesHtml(const RunReport& report) {
  if (report.notes.empty()) return {};
  constexpr std::size_t kMostNotes = 50;
  std::string out = "<ul>";
  for (std::size_t i = 0; i < report.notes.size() && i < kMostNotes; ++i) {
    out += fmt::format("<li>{}</li>", EscapeHtml(PlainText(report.notes[i])));
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
