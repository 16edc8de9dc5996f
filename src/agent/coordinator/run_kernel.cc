// What the kernel of this host says while the job runs: each trouble is an event, and a line for
// people when it is more than a note. It is told, not acted on.
#include <fmt/format.h>

#include "agent/coordinator/run_loop.h"
#include "agent/health/kernel_log_check.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr std::size_t kMostLine = 500;

}  // namespace

void RunLoop::OpenKernelLog() {
  if (options_.kernel_log.empty()) return;
  auto log = health::KernelLog::Open(options_.kernel_log, health::KernelLog::From::kNow);
  // Only root may read it on most machines, and a job does not need it.
  if (log) kernel_log_.emplace(*std::move(log));
}

void RunLoop::FollowKernelLog() {
  if (!kernel_log_) return;
  for (const health::ToldTrouble& told : kernel_log_->Read()) NoteTrouble(told);
}

/// A pid says something only of the host that it is of.
std::optional<Rank> RunLoop::RankOfPid(std::int64_t pid) const {
  if (options_.nodes > 1 || options_.leads_only) return std::nullopt;
  for (std::uint32_t i = 0; i < pids_.size(); ++i) {
    if (pids_[i] > 0 && pids_[i] == pid) return Rank(i);
  }
  return std::nullopt;
}

void RunLoop::NoteTrouble(const health::ToldTrouble& told) {
  const health::Trouble& trouble = told.trouble;
  const Instant now = clock_.Now();
  node_score_.Add(health::WeightOf(trouble.severity), now);
  const auto rank = trouble.pid ? RankOfPid(*trouble.pid) : std::nullopt;
  const auto number = [](auto value) {
    return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
  };
  const std::string what = PlainLine(health::Describe(trouble));
  events_.Add("node_unwell",
              {{"gen", state_.generation.value()},
               {"rank", rank ? std::optional<std::uint64_t>(rank->value()) : std::nullopt},
               {"kind", trouble.kind},
               {"code", number(trouble.code)},
               {"device", CutText(PlainLine(trouble.device), kMostLine)},
               {"pid", number(trouble.pid)},
               {"severity", std::string(health::NameOf(trouble.severity))},
               {"what", CutText(what, kMostLine)},
               {"line", CutText(PlainLine(told.line), kMostLine)},
               {"repeats", told.repeats},
               {"score_milli", static_cast<std::int64_t>(node_score_.At(now) * 1000)},
               {"said_ns", told.time.time_since_epoch().count()}});
  if (trouble.severity == health::Trouble::Severity::kNote && !rank) return;
  console_->Say(fmt::format("muster: the kernel says: {}{}{}", CutText(what, kMostLine),
                            rank ? fmt::format(", which is rank {}", rank->value()) : "",
                            node_score_.Unwell(now) ? "; this host is unwell" : ""));
}

}  // namespace muster::agent
