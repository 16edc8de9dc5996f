#include "profile/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "profile/report/text.h"

namespace muster::profile {
namespace {

constexpr std::size_t kMostFaults = 10;

void AddLine(std::string& out, std::string_view label, std::string_view text) {
  if (text.empty()) return;
  // Names come from files: nothing of them may drive the terminal or break the line.
  out += fmt::format("  {:<12}{}\n", label, PlainLine(text));
}

/// "3.23 s: recovery 77 ms (…), replay 3.15 s"
std::string LossInParts(const LostSeconds& lost) {
  return LostInWords(lost) + ": " + LostInParts(lost);
}

/// "steps 301 to 341 done again", by the generation that followed on it.
std::string DoneAgain(const RunReport& report, const FaultReport& fault) {
  const auto next = std::ranges::find_if(report.generations, [&fault](const auto& generation) {
    return generation.generation > fault.generation;
  });
  if (next == report.generations.end()) return {};
  const auto replay = std::ranges::find(report.replays, next->generation, &ReplaySpan::generation);
  if (replay == report.replays.end()) return {};
  if (replay->first_step == replay->last_step) {
    return fmt::format("step {} done again", FormatCount(replay->first_step));
  }
  return fmt::format("steps {} to {} done again", FormatCount(replay->first_step),
                     FormatCount(replay->last_step));
}

void AddFaults(const RunReport& report, std::string& out) {
  for (std::size_t i = 0; i < report.faults.size() && i < kMostFaults; ++i) {
    const FaultReport& fault = report.faults[i];
    AddLine(out, "fault",
            fmt::format("rank {} {}{}{}, {} into the run", fault.rank,
                        fault.what.empty() ? fault.cause : fault.what, AtStep(fault),
                        AndOthers(fault), FormatSeconds(fault.died)));
    AddLine(out, "", CutText(fault.exception, 200));
    AddLine(out, "", "lost " + LossInParts(fault.lost));
    AddLine(out, "", DoneAgain(report, fault));
  }
  if (report.faults.size() > kMostFaults) {
    AddLine(out, "", fmt::format("and {} more", report.faults.size() - kMostFaults));
  }
}

}  // namespace

std::string SummaryText(const RunReport& report) {
  std::string out = PlainLine(Verdict(report)) + "\n";
  AddLine(out, "run", fmt::format("{} {}", report.facts.name, report.facts.id));
  AddLine(out, "on", fmt::format("{}, {}", report.facts.host, Counted(report.facts.ranks, "rank")));
  AddLine(out, "began", report.facts.created_utc);
  AddLine(out, "ended", report.ended_utc);
  AddLine(out, report.state == RunState::kLost ? "last record" : "wall time",
          FormatSeconds(report.wall));
  AddLine(out, "steps", report.steps ? FormatCount(*report.steps) : "not reported");
  if (!Verdict(report).ends_with(report.reason)) AddLine(out, "reason", report.reason);
  if (report.exit_code.value_or(0) != 0)
    AddLine(out, "exit code", std::to_string(*report.exit_code));
  AddLine(out, "restarts", FormatCount(report.restarts));
  AddFaults(report, out);
  if (report.faults.size() > 1) AddLine(out, "lost", LossInParts(report.lost));
  if (report.goodput) {
    const std::string words = GoodputInWords(*report.goodput, report.struck_early);
    AddLine(out, "goodput", words.substr(words.find(' ') + 1));
  }
  if (report.step_times.samples > 0) {
    AddLine(out, "step time",
            fmt::format("median {}, p95 {}", FormatSeconds(report.step_times.median),
                        FormatSeconds(report.step_times.p95)));
  }
  if (!report.losses.empty()) {
    AddLine(out, "loss",
            fmt::format("{} at first, {} at the end (smoothed)",
                        FormatNumber(report.losses.front().mean),
                        FormatNumber(report.losses.back().smooth)));
  }
  if (!report.evals.empty() && report.evals.back().accuracy) {
    AddLine(out, "accuracy",
            fmt::format("{:.2f} % at step {}", *report.evals.back().accuracy * 100,
                        report.evals.back().step));
  }
  if (!report.checkpoints.empty()) {
    AddLine(out, "checkpoints",
            fmt::format("{} saved, the last at step {}", report.checkpoints.size(),
                        report.checkpoints.back().step));
  }
  AddLine(out, "to go on", report.go_on);
  for (const std::string& note : report.notes) AddLine(out, "note", note);
  return out;
}

}  // namespace muster::profile
