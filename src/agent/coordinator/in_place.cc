// Whether a generation that a fault struck can go on with those that live.
#include <algorithm>

#include "agent/coordinator/plan.h"

namespace muster::agent {
namespace {

bool IsGone(const RankStatus& rank) {
  return rank.state == RankState::kFailed || rank.state == RankState::kStopped || rank.doomed;
}

/// Whether those who died in this generation died of something from outside. Of a crash of its own
/// the survivors' memory, which every new rank gets a copy of, may be the cause.
bool DiedFromOutside(const JobState& state) {
  return std::ranges::all_of(state.ranks, [](const RankStatus& rank) {
    if (rank.state != RankState::kFailed || !rank.ending) return true;
    const Ending& ending = *rank.ending;
    if (IsFollower(ending, rank.steps)) return true;
    return !IsOwnCrash(ending) && ending.hang.empty() && ending.rule.name.empty();
  });
}

}  // namespace

bool IsLoading(const JobState& state, const RankStatus& rank) {
  const bool alive = rank.state == RankState::kStarting || rank.state == RankState::kRunning;
  return state.in_place && alive && rank.spawned == state.generation && !rank.carries;
}

std::uint64_t StepReached(const JobState& state) {
  std::uint64_t furthest = 0;
  for (const RankStatus& rank : state.ranks) furthest = std::max(furthest, rank.step);
  // Survivors still have the step that they brought along.
  return state.in_place && furthest <= state.resumed_at ? 0 : furthest;
}

bool CameToNoStep(const JobState& state) {
  return state.in_place && HighestStep(state) <= state.resumed_at;
}

bool MayGoOnInPlace(const JobState& state, const Policy& policy) {
  if (!policy.in_place || policy.process_restarts == 0 || state.without_shim) return false;
  bool survivors = false;
  for (const RankStatus& rank : state.ranks) {
    if (IsGone(rank) || IsLoading(state, rank)) continue;
    if (rank.state != RankState::kRunning || !rank.carries) return false;
    survivors = true;
  }
  if (!survivors || !CameToNoStep(state)) return survivors;
  return state.stalled < policy.most_stalled && DiedFromOutside(state);
}

bool AllQuiesced(const JobState& state) {
  return std::ranges::all_of(state.ranks, [&](const RankStatus& rank) {
    if (rank.state == RankState::kStarting) return !state.begun;
    return rank.state != RankState::kRunning || (rank.quiesced && !rank.doomed);
  });
}

std::uint64_t HighestStep(const JobState& state) {
  std::uint64_t step = 0;
  for (const RankStatus& rank : state.ranks) {
    if (rank.state == RankState::kRunning) step = std::max(step, rank.step);
  }
  return step;
}

}  // namespace muster::agent
