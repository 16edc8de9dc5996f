#include <fmt/format.h>

#include "agent/coordinator/run_loop.h"
#include "agent/stacks/clusters.h"

namespace muster::agent {

/// Ranks without heartbeat that stand still: told, and beyond the user's limit acted upon.
void RunLoop::WatchForQuiet() {
  const auto quiet = quiet_watch_.Look(state_.ranks, clock_.Now());
  if (!quiet) return;
  const bool kills = quiet->acts && options_.on_hang == OnHang::kRestart;
  std::vector<std::uint32_t> ranks;
  for (const Rank rank : quiet->ranks) ranks.push_back(rank.value());
  const Generation generation = state_.generation;
  events_.Add("suspected", {{"gen", generation.value()},
                            {"ranks", stacks::RankList(ranks)},
                            {"what", quiet->what},
                            {"acts", kills ? 1 : 0}});
  console_->Say(fmt::format(
      "muster: {}: {}; {}", quiet->acts ? "hang" : "suspected hang", quiet->what,
      kills                 ? "the outlier is killed"
      : options_.hang_limit ? "nothing is done about it yet"
                            : "nothing is done about it: that is what --hang-limit is for"));
  if (kills) stacks_[generation] = {};
  TakeStacks([] {},
             [this, generation, kills, quiet = *quiet](const auto& processes) {
               const auto clusters = stacks::ClustersOf(processes);
               std::optional<Rank> outlier = quiet.held;
               if (!outlier && !clusters.empty()) outlier = Rank(clusters.front().ranks.front());
               NoteStacks(generation, outlier, processes);
               if (!kills || !outlier || state_.generation != generation) return;
               KillStill(*outlier, quiet.what);
             });
}

void RunLoop::KillStill(Rank rank, const std::string& what) {
  const RankStatus& status = state_.ranks[rank.value()];
  if (state_.phase != Phase::kRunning || status.state != RankState::kRunning) return;
  Ending reason{.hang = what};
  reason.still = true;
  KillRank(rank, std::move(reason));
}

}  // namespace muster::agent
