#include <fmt/format.h>

#include <algorithm>

#include "profile/report/page/plot.h"
#include "profile/report/page/sections.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

constexpr std::size_t kMostBars = 3;  // of more faults than that, one bar of all

struct Part {
  std::string_view css;
  std::string_view name;
  double seconds = 0;
};

/// A bar and, below it, what each part is and how long it took.
std::string BarWithKey(const std::vector<Part>& parts, double whole, std::string_view label) {
  double sum = 0;
  for (const Part& part : parts) sum += part.seconds;
  std::vector<BarPart> bar;
  std::string key = "<ul class=\"legend key\">";
  for (const Part& part : parts) {
    if (part.seconds <= 0) continue;
    const std::string share = sum > 0 ? fmt::format("{:.1f} %", 100 * part.seconds / sum) : "";
    const std::string took = ShortSeconds(part.seconds);
    const std::string text = fmt::format("{} {}", part.name, took);
    bar.push_back({std::string(part.css), part.seconds, fmt::format("{}, {}", text, share)});
    key += fmt::format("<li><i class=\"swatch {}\"></i>{} <b>{}</b> <small>{}</small></li>",
                       part.css, part.name, took, share);
  }
  return BarHtml(bar, whole, label) + key + "</ul>";
}

std::vector<Part> PartsOf(const LostSeconds& lost) {
  return {{"l-detect", "detect", lost.detect},
          {"l-stop", "stop", lost.stop},
          {"l-start", "start", lost.start},
          {"l-replay", lost.exact() ? "replay" : "work, at most", lost.replay + lost.unknown}};
}

std::string BudgetBar(const RunReport& report) {
  // Without steps nobody knows what the time was spent on.
  if (report.wall <= 0 || report.step_times.samples == 0) return {};
  const TimeBudget& budget = report.budget;
  const std::vector<Part> parts{{"b-startup", "start-up", budget.startup},
                                {"b-training", "training", budget.training},
                                {"b-lost", "lost to faults", budget.lost},
                                {"b-other", "between steps", budget.other},
                                {"b-ending", "after the last step", budget.ending}};
  return "<h3>The whole run</h3>" +
         BarWithKey(parts, report.wall, "Where the wall time of the run went");
}

/// A bar for each of a few faults that have none at their lanes, on one scale, so that their
/// lengths compare; of many one bar for all: the table of faults has each.
std::string FaultBars(const RunReport& report) {
  if (report.faults.size() > kMostBars) {
    const std::string title = fmt::format(
        "{}: {} lost in all", Counted(report.faults.size(), "fault"), LostInWords(report.lost));
    return fmt::format("<h3>{}</h3>{}", title,
                       BarWithKey(PartsOf(report.lost), report.lost.at_most(), title));
  }
  double longest = 0;
  for (const FaultReport& fault : report.faults) longest = std::max(longest, fault.lost.at_most());
  if (longest <= 0) return {};
  std::string out;
  for (const FaultReport& fault : report.faults) {
    if (HasCloseUp(report, fault)) continue;  // told there
    const std::string title =
        fmt::format("Rank {} died{}: {} lost", fault.rank, AtStep(fault), LostInWords(fault.lost));
    out += fmt::format("<h3>{}</h3>{}", EscapeHtml(title),
                       BarWithKey(PartsOf(fault.lost), longest, title));
  }
  return out;
}

/// Whether some fault has its stages on the page.
bool AnyStages(const RunReport& report) {
  return std::ranges::any_of(report.faults,
                             [](const FaultReport& fault) { return fault.lost.at_most() > 0; });
}

constexpr std::string_view kExplained =
    "<p class=\"fine\"><b>Detect</b>: from the death to the decision to restart. <b>Stop</b>: "
    "until the other "
    "workers are gone, or wait at a step boundary. <b>Start</b>: until every rank begins a step "
    "again. <b>Replay</b>: until every step that had been finished is finished again. The first "
    "three are the recovery. What had been done of the step in flight is done again as well; that "
    "time is not in here but between steps. A program that reports no steps counts as started when "
    "it is executed, and what of its work was saved is not known.</p>";

}  // namespace

std::string ShortSeconds(double seconds) {
  return seconds > 0 && seconds < 0.001 ? "under 1 ms" : FormatSeconds(seconds);
}

std::string LostBarHtml(const LostSeconds& lost, std::string_view label) {
  return BarWithKey(PartsOf(lost), lost.at_most(), label);
}

std::string TimeHtml(const RunReport& report) {
  return Section("Where the time went",
                 BudgetBar(report) + FaultBars(report) +
                     (AnyStages(report) ? std::string(kExplained) : std::string()));
}

}  // namespace muster::profile
