#include "agent/health/kernel_log_check.h"

#include <fmt/format.h>

#include "agent/health/node_score.h"
#include "base/text.h"

namespace muster::agent::health {

std::string Describe(const Trouble& trouble) {
  std::string text = trouble.kind;
  if (trouble.code) text += fmt::format(" {}", *trouble.code);
  if (!trouble.device.empty()) text += " on " + PlainLine(trouble.device);
  text += fmt::format(": {}", trouble.meaning);
  if (trouble.pid) text += fmt::format(" (pid {})", *trouble.pid);
  return text;
}

Check JudgeKernelLog(std::span<const ToldTrouble> troubles, std::uint64_t missed, Instant now) {
  Check check{.name = "kernel-log", .measured = {}, .limit = "a score below 1", .advice = {}};
  NodeScore score;
  const ToldTrouble* worst = nullptr;
  for (const ToldTrouble& told : troubles) {
    score.Add(WeightOf(told.trouble.severity), told.time);
    if (worst == nullptr || told.trouble.severity >= worst->trouble.severity) worst = &told;
  }
  check.measured = worst == nullptr
                       ? "nothing that speaks against this machine"
                       : fmt::format("score {:.2f}; {}, the last of the worst: {}", score.At(now),
                                     Counted(troubles.size(), "trouble"), Describe(worst->trouble));
  if (missed > 0) check.measured += " (the beginning is overwritten)";
  if (score.Unwell(now)) {
    check.verdict = Check::Verdict::kWarn;
    check.advice = "take no job until it is looked at: dmesg; the score halves every 6 hours";
  }
  return check;
}

Check CheckKernelLog(const std::string& path) {
  auto log = KernelLog::Open(path, KernelLog::From::kBoot);
  if (!log) {
    return {
        .name = "kernel-log",
        .verdict = Check::Verdict::kSkipped,
        .measured = {},
        .limit = {},
        .advice = log.error().message() + "; as root, or with kernel.dmesg_restrict=0, it is read"};
  }
  const auto troubles = log->Read();
  return JudgeKernelLog(troubles, log->missed(), SystemClock().Now());
}

}  // namespace muster::agent::health
