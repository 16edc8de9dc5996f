#pragma once
// For tests: a job that lives in Advance alone. Feed it events; it keeps the state and a clock that
// only the test moves.

#include <vector>

#include "agent/coordinator/plan.h"

namespace muster::agent {

inline constexpr Instant kNow{std::chrono::hours(1000)};

/// Feeds events and keeps the last orders.
class Job {
 public:
  explicit Job(std::uint32_t ranks) { state.ranks.resize(ranks); }

  std::vector<Action> Feed(const Event& event) {
    Plan plan = Advance(state, event, now, policy);
    state = plan.next;
    reason = plan.reason;
    return plan.actions;
  }
  std::vector<Action> Exit(std::uint32_t rank, Ending ending, nanoseconds ago = {}) {
    ending.time = now - ago;
    return Feed({.kind = Event::Kind::kExited,
                 .rank = Rank(rank),
                 .generation = state.ranks[rank].spawned,
                 .ending = ending});
  }
  void StartAll() {
    for (std::uint32_t i = 0; i < state.ranks.size(); ++i) {
      Feed({.kind = Event::Kind::kStarted, .rank = Rank(i), .generation = state.generation});
      state.ranks[i].steps = true;
    }
  }
  void Begin() {
    Feed({.kind = Event::Kind::kStart});
    StartAll();
  }

  JobState state;
  Instant now = kNow;
  Policy policy;
  std::string reason;
};

}  // namespace muster::agent
