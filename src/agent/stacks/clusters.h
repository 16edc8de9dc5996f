#pragma once
// Ranks that stand at the same place, together: of hundreds of stacks those few are read that
// differ. Pure.

#include <string>
#include <vector>

#include "agent/stacks/stacks.h"

namespace muster::agent::stacks {

/// Ranks whose main threads stand in the same functions: in Python the same lines, else the same
/// native functions.
struct Cluster {
  std::vector<std::uint32_t> ranks;
  const Process* example = nullptr;  ///< of the first of them
};

/// The fewest ranks first: the outliers. The processes outlive the value.
std::vector<Cluster> ClustersOf(const std::vector<Process>& processes);

/// Where a process stands, in a few words, the innermost first: "lock_wait < std::mutex::lock <
/// main (loop.cc:12)"; what is missing when there is nothing. At most 200 bytes.
std::string PlaceOf(const Process& process);

/// "0-2, 5"
std::string RankList(const std::vector<std::uint32_t>& ranks);

/// For people: each cluster with the stacks of its first rank.
std::string ToText(const std::vector<Process>& processes);

}  // namespace muster::agent::stacks
