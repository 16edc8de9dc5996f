// What the kernel of this host says while the job runs: each trouble is an event, and a line for
// people when it is more than a note. It is told, not acted on.
#include <fmt/format.h>

#include <algorithm>

#include "agent/coordinator/run_loop.h"
#include "agent/health/kernel_log_check.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr std::size_t kMostLine = 500;
constexpr std::uint32_t kNoRank = ~0U;

EventLog::Field RankField(std::uint32_t rank) {
  if (rank == kNoRank) return {"rank", std::optional<std::uint64_t>()};
  return {"rank", rank};
}

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
std::uint32_t RunLoop::RankOfPid(std::int64_t pid) const {
  if (options_.nodes > 1 || options_.leads_only || pid <= 0) return kNoRank;
  const auto found = std::ranges::find(pids_, pid);
  return found == pids_.end() ? kNoRank : static_cast<std::uint32_t>(found - pids_.begin());
}

void RunLoop::NoteTrouble(const health::ToldTrouble& told) {
  const health::Trouble& trouble = told.trouble;
  const Instant now = clock_.Now();
  node_score_.Add(health::WeightOf(trouble.severity), now);
  const std::uint32_t rank = RankOfPid(trouble.pid.value_or(0));
  const auto number = [](auto value) {
    return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
  };
  const std::string what = PlainLine(health::Describe(trouble));
  events_.Add("node_unwell",
              {{"gen", state_.generation.value()},
               RankField(rank),
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
  if (trouble.severity == health::Trouble::Severity::kNote && rank == kNoRank) return;
  console_->Say(fmt::format("muster: the kernel says: {}{}{}", CutText(what, kMostLine),
                            rank == kNoRank ? "" : fmt::format(", which is rank {}", rank),
                            node_score_.Unwell(now) ? "; this host is unwell" : ""));
}

}  // namespace muster::agent
