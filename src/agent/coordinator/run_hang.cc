#include <fmt/format.h>

#include <csignal>

#include "agent/coordinator/run_loop.h"

namespace muster::agent {
namespace {

// A process in the kernel (state D) does not die of SIGKILL.
constexpr auto kDieLimit = std::chrono::seconds(5);

}  // namespace

void RunLoop::WatchForHangs() {
  // In any other phase ranks wait for us.
  if (state_.phase != Phase::kRunning) return hang_watch_.Restart();
  std::vector<RankSight> sights(state_.ranks.size());
  for (std::uint32_t i = 0; i < sights.size(); ++i) {
    sights[i].pulse = board_->Read(Rank(i));
    sights[i].alive = state_.ranks[i].state == RankState::kRunning && hangs_[i].empty() &&
                      sights[i].pulse.generation == state_.generation;
  }
  const auto see = [this](Rank rank) -> std::optional<os::ProcessSight> {
    const auto sight = os::SeeProcess(pids_[rank.value()]);
    return sight ? std::optional(*sight) : std::nullopt;
  };
  const auto hang = hang_watch_.Look(sights, clock_.Now(), see);
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
  if (!kills || !shim_ || !shim_->SignalRank(rank, SIGKILL)) return;
  hangs_[rank] = hang.what;
  loop_->After(kDieLimit,
               [this, rank = hang.rank, spawned = status.spawned] { GiveUpOn(rank, spawned); });
}

/// It does not die. The run goes on without it: its collectives are aborted, and a checkpoint of
/// its generation is refused.
void RunLoop::GiveUpOn(Rank rank, Generation spawned) {
  const RankStatus& status = state_.ranks[rank.value()];
  if (status.spawned != spawned || status.state != RankState::kRunning) return;
  Event event{.kind = Event::Kind::kExited, .rank = rank, .generation = spawned};
  event.ending = {
      .signal = SIGKILL,
      .time = clock_.Now(),
      .hang = std::exchange(hangs_[rank.value()], "") + ", and does not die of SIGKILL"};
  event.pid = pids_[rank.value()];
  Feed(event);
}

}  // namespace muster::agent
