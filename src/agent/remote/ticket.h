#pragma once
// What a node needs to know to work on a job: the answer to its join. JSON on the wire
// (docs/formats/node-protocol.md). Values; pure.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::agent {

/// Both sides must speak the same: what changes an order or a report changes it.
inline constexpr std::uint32_t kNodeProtocol = 4;

/// Host of a URL that an agent started by ssh is given: where that ssh came from.
inline constexpr const char* kSshClient = "ssh-client";

/// Who wants to join.
struct JoinRequest {
  std::uint32_t protocol = kNodeProtocol;
  std::string version;  ///< of muster, for messages
  std::string name;     ///< of the node, its host's by default
};

struct JobTicket {
  std::string agent;  ///< under which the coordinator knows the node from now on
  std::string run_id;
  std::string folder;  ///< of the run, on the coordinator's host
  std::string cwd;     ///< in which the job's relative paths hold
  std::string job_yaml;
  std::vector<std::string> flags;  ///< of `muster run`, that a job file does not hold
  std::uint32_t ranks = 0;         ///< of the job
  std::uint32_t ranks_per_node = 0;
  std::chrono::milliseconds lease{};  ///< a node that is not heard of for so long is given up
};

std::string FormatJoin(const JoinRequest& request);
/// Invalid: no join of any version.
Result<JoinRequest> ParseJoin(std::string_view text);
std::string FormatTicket(const JobTicket& ticket);
Result<JobTicket> ParseTicket(std::string_view text);

/// Empty, or why these two cannot work together.
std::string WhyNotTogether(const JoinRequest& request, const std::string& version);

}  // namespace muster::agent
