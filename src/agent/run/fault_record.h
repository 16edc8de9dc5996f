#pragma once
// fault-G.json and fault.json: why a generation ended early, with what a person needs to find out
// more. Mode 0600, values of the user's environment hidden. Pure formatting; the run loop writes.

#include <string>
#include <vector>

#include "agent/coordinator/job_state.h"

namespace muster::agent {

/// Where ranks stood before one of them was killed.
struct StackGroup {
  std::vector<std::uint32_t> ranks;
  std::string place;
};

struct FaultRecord {
  Fault fault;
  std::string decision;  ///< what was done about it, in words
  std::vector<std::string> command;
  std::vector<std::string> environment;  ///< redacted
  std::vector<RankStatus> ranks;         ///< all of them, when the generation was given up
  Instant paused{};
  Instant stopped{};
  std::string out_tail;
  std::string err_tail;
  std::vector<StackGroup> stacks{};  ///< the outliers first
  std::string stacks_file{};         ///< in the run folder: all of them; "": none were taken
  std::string error_file;            ///< content of TORCHELASTIC_ERROR_FILE
};

/// As JSON with a newline behind it; what is no UTF-8 is replaced. "layer" is "start" when the
/// worker never ran, else "pidfd".
std::string FormatFault(const FaultRecord& record);

/// The line of a worker's stderr that tells why it died: of its last ones the one that names an
/// error, else the last that says something. Without "[rank1]:" and "error:" in front, and without
/// addresses that change from run to run; at most 500 bytes.
std::string ExceptionLine(const std::string& err_tail);

}  // namespace muster::agent
