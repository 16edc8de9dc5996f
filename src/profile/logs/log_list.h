#pragma once
// Which logs a run folder holds: logs/rank-R/gen-G.stdout.log and .stderr.log, one file a process
// and stream. Names that are none of these are passed over. One thread.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/report/run_files.h"

namespace muster::profile {

/// In the order of generation, rank and stream.
struct LogName {
  std::uint64_t generation = 0;  ///< in which its process was started
  std::uint32_t rank = 0;
  bool err = false;
  auto operator<=>(const LogName&) const = default;

  std::string log_path() const;
  std::string index_path() const;
};

struct LogChoice {
  std::vector<std::uint32_t> ranks;  ///< empty: all
  std::optional<std::uint64_t> generation;
  bool out = true;
  bool err = true;
  bool Takes(const LogName& name) const;
};

/// Every log there is, sorted; empty when there is no folder of logs.
Result<std::vector<LogName>> ListLogs(const RunFiles& files);

}  // namespace muster::profile
