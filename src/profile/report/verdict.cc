#include <fmt/format.h>

#include <algorithm>

#include "profile/report/run_report.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

constexpr std::string_view kInterrupted = "interrupted ";

std::string FaultsInWords(const RunReport& report) {
  const auto survived =
      static_cast<std::uint64_t>(std::ranges::count_if(report.faults, &FaultReport::survived));
  if (survived == 0 && report.faults.empty() && report.restarts > 0) {
    return ", " + Counted(report.restarts, "restart") + " for reasons that are not recorded";
  }
  if (survived == 0) return report.faults.empty() && report.faults_known ? ", no faults" : "";
  return fmt::format(", {} survived, {} lost{}",
                     survived == 1 ? "one fault" : FormatCount(survived) + " faults",
                     LostInWords(report.lost), report.faults.size() > 1 ? " in all" : "");
}

/// "600 steps in", or for a program that reports no steps "finished in", "for".
std::string WorkDone(const RunReport& report) {
  if (report.steps) return Counted(*report.steps, "step") + " in";
  return report.state == RunState::kRunning ? "for" : "finished in";
}

constexpr std::size_t kMostReason = 160;

/// What struck and what was done about it, without the exception and the reasons: those are told
/// below.
std::string ShortReason(const RunReport& report) {
  std::string text = report.reason;
  if (!report.faults.empty()) {
    std::string exception = report.faults.back().exception;
    exception.resize(exception.find_last_not_of(" .,;:") + 1);
    const auto at = exception.empty() ? std::string::npos : text.find(": " + exception);
    if (at != std::string::npos) text.erase(at, exception.size() + 2);
  }
  const auto decision = text.find("; ");
  if (decision != std::string::npos) text.resize(std::min(text.size(), text.find(": ", decision)));
  return CutText(text, kMostReason);
}

std::string WhyItFailed(const RunReport& report) {
  if (!report.reason.empty()) return ShortReason(report);
  if (report.faults.empty()) return "no reason was recorded";
  const FaultReport& last = report.faults.back();
  return fmt::format("rank {} ended with {}{}", last.rank,
                     last.exit.empty() ? last.cause : last.exit, AndOthers(last));
}

}  // namespace

std::vector<std::uint64_t> DeadRanks(const FaultReport& fault) {
  std::vector<std::uint64_t> ranks{fault.rank};
  ranks.insert(ranks.end(), fault.others.begin(), fault.others.end());
  return ranks;
}

std::string AndOthers(const FaultReport& fault) {
  if (fault.others.empty()) return {};
  return fmt::format("{}{})", fault.others.size() == 1 ? " (and rank " : " (and ranks ",
                     Ranges({fault.others.begin(), fault.others.end()}, kMostRankRanges));
}

bool WasInterrupted(const RunReport& report) {
  return report.state == RunState::kFailed && report.reason.starts_with(kInterrupted);
}

std::string AtStep(const FaultReport& fault) {
  if (!fault.step) return {};
  return *fault.step == 0 ? " before its first step" : " at step " + FormatCount(*fault.step);
}

std::string Verdict(const RunReport& report) {
  const std::string wall = FormatSeconds(report.wall);
  const std::string done = report.steps ? Counted(*report.steps, "step") : wall;
  switch (report.state) {
    case RunState::kSucceeded:
      return fmt::format("SUCCEEDED — {} {}{}", WorkDone(report), wall, FaultsInWords(report));
    case RunState::kFailed:
      if (WasInterrupted(report)) {
        return fmt::format("INTERRUPTED {} after {}{}", report.reason.substr(kInterrupted.size()),
                           wall, report.steps ? " — " + done + " done" : "");
      }
      return fmt::format("FAILED after {} — {}", done, WhyItFailed(report));
    case RunState::kRunning:
      return fmt::format("RUNNING — {} {} so far{}", WorkDone(report), wall, FaultsInWords(report));
    case RunState::kLost:
      if (!report.result_unread.empty()) {
        return "UNFINISHED — how it ended is not known: " + report.result_unread;
      }
      // When it ended nobody wrote down.
      return report.steps
                 ? fmt::format("UNFINISHED — muster run ended without a word after {}", done)
                 : fmt::format(
                       "UNFINISHED — muster run ended without a word; the last record is "
                       "from {} after the start",
                       wall);
  }
  return {};
}

}  // namespace muster::profile
