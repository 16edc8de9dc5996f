#pragma once
// One history: a job of several nodes, run to its end by the real RunLoop, Gang, AgentHub,
// RemotePeer and AgentLink, with everything else drawn from a seed: how many agents, what program,
// which restarts are allowed, and what goes wrong for the first part of it. Then faults stop, and
// the run has to be back at work within a bounded time, and to end.

#include <cstdint>
#include <optional>
#include <string>

namespace muster::agent::simulation {

struct HistoryOptions {
  std::uint64_t seed = 1;
  std::uint32_t agents = 0;  ///< 0: drawn, from 3 to 20
  std::string folder;        ///< an empty one, the history's own
};

struct HistoryResult {
  std::optional<std::string> violation;
  std::string plan;   ///< what was drawn, in a line
  std::string story;  ///< the last of what happened
  std::string said;   ///< by the coordinator, to its user
  std::string end;    ///< the run's verdict
  std::uint64_t generations = 0;
  std::uint64_t digest = 0;  ///< the same for the same seed
  double virtual_seconds = 0;
};

HistoryResult Play(const HistoryOptions& options);

}  // namespace muster::agent::simulation
