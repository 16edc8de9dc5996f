#include <fmt/format.h>

#include "agent/coordinator/run_loop.h"
#include "base/bytes.h"

namespace muster::agent {
namespace {

using Act = spec::LogRule::Act;

std::string_view WhatIsDone(Act action) {
  switch (action) {
    case Act::kNotify:
      return "nothing is done about it";
    case Act::kDump:
      return "stacks are taken";
    case Act::kRestartProcess:
      return "it is killed";
    case Act::kRestartJob:
      return "every rank is killed and started again";
    case Act::kFail:
      return "the run ends";
    case Act::kDrainNode:
      return "nothing is done about it: there is no other node yet";
  }
  return "";
}

}  // namespace

/// Go is when every worker runs; from the first death on nothing is judged.
void RunLoop::TellRules(Phase before) {
  const Phase after = state_.phase;
  if (before == after || options_.log_rules.empty()) return;
  if (after == Phase::kRunning) {
    node_->Send(order::Go{});
  } else if (after != Phase::kStarting) {
    node_->Send(order::Pause{});
  }
}

void RunLoop::RuleFired(const rules::Firing& firing) {
  const bool current = firing.generation == state_.generation &&
                       (state_.phase == Phase::kRunning || state_.phase == Phase::kStarting);
  const RankStatus& status = state_.ranks[firing.rank.value()];
  events_.Add("log_rule", {{"gen", firing.generation.value()},
                           {"rank", firing.rank.value()},
                           {"rule", firing.name},
                           {"why", firing.why},
                           {"action", std::string(NameOf(firing.action))},
                           {"seen_ns", firing.time.time_since_epoch().count()},
                           {"late", current ? 0 : 1}});
  if (!current) return;  // the generation is over by now, for another reason
  console_->Say(fmt::format("muster: log rule '{}': rank {}: {}; {}", firing.name,
                            firing.rank.value(), firing.why, WhatIsDone(firing.action)));
  const Ending ending{.rule = {firing.name, firing.why}};
  switch (firing.action) {
    case Act::kRestartProcess:
      if (status.state == RankState::kRunning) KillRank(firing.rank, ending);
      break;
    case Act::kRestartJob:
      for (std::uint32_t i = 0; i < state_.ranks.size(); ++i) {
        if (state_.ranks[i].state == RankState::kRunning) KillRank(Rank(i), ending);
      }
      break;
    case Act::kFail:
      Feed({.kind = Event::Kind::kGiveUp,
            .ending = {.code = 1},
            .text = fmt::format("log rule '{}': rank {}: {}", firing.name, firing.rank.value(),
                                firing.why)});
      break;
    case Act::kDump:
      TakeStacks([] {}, [this, generation = firing.generation, rank = firing.rank](
                            const auto& processes) { NoteStacks(generation, rank, processes); });
      break;
    case Act::kNotify:
    case Act::kDrainNode:
      break;
  }
}

}  // namespace muster::agent
