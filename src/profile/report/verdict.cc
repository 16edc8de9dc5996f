#include <fmt/format.h>

#include <algorithm>

#include "profile/report/run_report.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

std::string FaultsInWords(const RunReport& report) {
  double longest = 0;
  std::uint64_t survived = 0;
  for (const FaultReport& fault : report.faults) {
    if (!fault.survived()) continue;
    ++survived;
    longest = std::max(longest, *fault.stepping - fault.died);
  }
  if (survived == 0 && report.faults.empty() && report.restarts > 0) {
    return ", " + Plural(report.restarts, "restart") + " for reasons that are not recorded";
  }
  if (survived == 0) return report.faults.empty() && report.faults_known ? ", no faults" : "";
  if (survived == 1) return fmt::format(", one fault survived in {}", FormatSeconds(longest));
  return fmt::format(", {} faults survived, the longest in {}", FormatCount(survived),
                     FormatSeconds(longest));
}

/// "600 steps in", or for a program that reports no steps "finished in", "for".
std::string WorkDone(const RunReport& report) {
  if (report.steps > 0) return Plural(report.steps, "step") + " in";
  return report.state == RunState::kRunning ? "for" : "finished in";
}

std::string WhyItFailed(const RunReport& report) {
  if (!report.reason.empty()) return report.reason;
  if (report.faults.empty()) return "no reason was recorded";
  const FaultReport& last = report.faults.back();
  return fmt::format("rank {} ended with {}", last.rank,
                     last.exit.empty() ? last.cause : last.exit);
}

}  // namespace

std::string AtStep(const FaultReport& fault) {
  return fault.step == 0 ? std::string() : " at step " + FormatCount(fault.step);
}

std::string Verdict(const RunReport& report) {
  const std::string wall = FormatSeconds(report.wall);
  switch (report.state) {
    case RunState::kSucceeded:
      return fmt::format("SUCCEEDED — {} {}{}", WorkDone(report), wall, FaultsInWords(report));
    case RunState::kFailed:
      return fmt::format("FAILED after {} — {}{}",
                         report.steps == 0 ? wall : Plural(report.steps, "step"),
                         WhyItFailed(report),
                         report.exit_code ? fmt::format(" (exit code {})", *report.exit_code) : "");
    case RunState::kRunning:
      return fmt::format("RUNNING — {} {} so far{}", WorkDone(report), wall, FaultsInWords(report));
    case RunState::kLost:
      return fmt::format("UNFINISHED — muster run ended without a word after {}",
                         report.steps == 0 ? wall : Plural(report.steps, "step"));
  }
  return {};
}

}  // namespace muster::profile
