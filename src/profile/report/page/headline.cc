#include <fmt/format.h>

#include <algorithm>

#include "profile/report/page/sections.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

std::string_view CssOf(RunState state) {
  switch (state) {
    case RunState::kSucceeded:
      return "good";
    case RunState::kFailed:
      return "bad";
    case RunState::kRunning:
      return "live";
    case RunState::kLost:
      return "bad";
  }
  return "bad";
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Keeps a number on one line with its unit, and the parts of a time: "600 steps", "1 min 16 s".
std::string Unbroken(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view before = text.substr(0, i);
    const bool within_time =
        (before.ends_with(" d") || before.ends_with(" h") || before.ends_with(" min")) &&
        i + 1 < text.size() && IsDigit(text[i + 1]);
    const bool unit = text[i] == ' ' && i > 0 && (IsDigit(text[i - 1]) || within_time);
    out += unit ? "\u00A0" : std::string(1, text[i]);
  }
  return out;
}

std::string Tile(std::string_view label, std::string_view value, std::string_view detail) {
  return fmt::format("<div><dt>{}</dt><dd>{}{}</dd></div>", EscapeHtml(label), EscapeHtml(value),
                     detail.empty()
                         ? std::string()
                         : fmt::format("<small>{}</small>", EscapeHtml(Unbroken(detail))));
}

std::string FaultTile(const RunReport& report) {
  if (report.faults.empty()) return Tile("Faults", "none", "");
  const auto survived = std::count_if(report.faults.begin(), report.faults.end(),
                                      [](const FaultReport& fault) { return fault.survived(); });
  return Tile("Faults survived", fmt::format("{} of {}", survived, report.faults.size()),
              fmt::format("{} lost in all", LostInWords(report.lost)));
}

std::string Tiles(const RunReport& report) {
  std::string out = "<dl class=\"tiles\">";
  if (report.steps) {
    out += Tile("Steps", FormatCount(*report.steps),
                fmt::format("on {}", Counted(report.facts.ranks, "rank")));
  } else {
    out += Tile("Ranks", FormatCount(report.facts.ranks), "");
  }
  out += Tile("Wall time", FormatSeconds(report.wall), "");
  if (report.goodput) {
    out += Tile("Goodput", fmt::format("{:.1f} %", *report.goodput * 100),
                report.struck_early ? "time in steps that counted, from the first step on"
                                    : "time in steps that counted");
  }
  out += FaultTile(report);
  if (report.step_times.samples > 0) {
    out += Tile("Median step", FormatSeconds(report.train_times.median),
                fmt::format("95th percentile {}", FormatSeconds(report.train_times.p95)));
  }
  if (!report.evals.empty() && report.evals.back().accuracy) {
    out += Tile("Accuracy", fmt::format("{:.2f} %", *report.evals.back().accuracy * 100),
                fmt::format("at step {}", FormatCount(report.evals.back().step)));
  } else if (!report.losses.empty()) {
    out += Tile("Loss", FormatNumber(report.losses.back().smooth), "smoothed, at the end");
  }
  return out + "</dl>";
}

/// What a reader of a run that was not done wants to type.
std::string GoOnHtml(const RunReport& report) {
  if (report.go_on.empty()) return {};
  return fmt::format("<p class=\"goon\">To go on: <code>{}</code></p>",
                     PlainHtml(report.go_on, 20'000));
}

}  // namespace

std::string HeadlineHtml(const RunReport& report) {
  const std::string verdict = Verdict(report);
  const auto space = verdict.find(' ');
  const std::string_view rest = std::string_view(verdict).substr(space);
  return fmt::format(
      "<header><p class=\"name\">{} <span>run {}</span></p><h1><b class=\"state {}\">{}</b> "
      "{}</h1>{}{}</header>",
      PlainHtml(report.facts.name.empty() ? "unnamed job" : report.facts.name, 200),
      PlainHtml(report.facts.id, 100), CssOf(report.state), EscapeHtml(verdict.substr(0, space)),
      PlainHtml(Unbroken(rest), 2000), GoOnHtml(report), Tiles(report));
}

}  // namespace muster::profile
