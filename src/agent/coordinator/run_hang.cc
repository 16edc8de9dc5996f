#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <span>
#include <utility>

#include "agent/coordinator/run_loop.h"

namespace muster::agent {

void RunLoop::WatchForHangs() {
  // In any other phase ranks wait for us.
  if (state_.phase != Phase::kRunning) {
    quiet_watch_.Restart();
    return hang_watch_.Restart();
  }
  WatchForQuiet();
  for (std::uint32_t i = 0; i < sights_.size(); ++i) {
    sights_[i].alive = i < state_.ranks.size() && state_.ranks[i].state == RankState::kRunning &&
                       kills_[i].hang.empty() && sights_[i].pulse.generation == state_.generation;
  }
  const std::size_t ranks = std::min(sights_.size(), state_.ranks.size());
  const auto hang = hang_watch_.Look(std::span(sights_).first(ranks), clock_.Now());
  if (hang) EndHang(*hang);
}

void RunLoop::EndHang(const Hang& hang) {
  const std::uint32_t rank = hang.rank.value();
  const RankStatus& status = state_.ranks[rank];
  const bool kills = options_.on_hang == OnHang::kRestart;
  events_.Add("hang", {{"gen", state_.generation.value()},
                       {"rank", rank},
                       {"step", status.step},
                       {"what", hang.what}});
  console_->Say(fmt::format("muster: rank {} hangs: {}, behind step {}; {}", rank, hang.what,
                            status.step, kills ? "it is killed" : "nothing is done about it"));
  StacksBeforeKill(hang);
}

/// For what `reason` says, a hang or a log rule.
void RunLoop::KillRank(Rank rank, Ending reason) {
  node_->Send(order::Kill{rank});
  kills_[rank.value()] = std::move(reason);
  const Generation spawned = state_.ranks[rank.value()].spawned;
  loop_->After(kDieLimit, [this, rank, spawned] { GiveUpOn(rank, spawned); });
}

/// It does not die. The run goes on without it: its collectives are aborted, and a checkpoint of
/// its generation is refused.
void RunLoop::GiveUpOn(Rank rank, Generation spawned) {
  const RankStatus& status = state_.ranks[rank.value()];
  if (status.spawned != spawned || status.state != RankState::kRunning) return;
  Event event{.kind = Event::Kind::kExited, .rank = rank, .generation = spawned};
  event.ending = std::exchange(kills_[rank.value()], {});
  event.ending.signal = SIGKILL;
  event.ending.time = clock_.Now();
  std::string& why = event.ending.hang.empty() ? event.ending.rule.why : event.ending.hang;
  why += ", and does not die of SIGKILL";
  event.pid = pids_[rank.value()];
  Feed(event);
}

}  // namespace muster::agent
