#pragma once
// Every check of this host in one go, for `muster doctor`: what a job would stumble over, before it
// does. Takes about a second; blocks its thread.

#include <optional>
#include <string>
#include <vector>

#include "agent/health/check.h"
#include "agent/health/kernel_log.h"
#include "agent/health/sight.h"

namespace muster::agent::health {

struct DoctorOptions {
  std::string folder = ".";  ///< where run folders will be made
  std::string kernel_log = KernelLog::kDevice;
  std::string python;                    ///< empty: none is started
  std::vector<std::string> environment;  ///< for it
};

/// In the order of the table; what is not looked at is there as skipped, with the reason.
std::vector<Check> Examine(const Sight& sight, const DoctorOptions& options);

/// A line a check, aligned, what to do below it.
std::string CheckTable(const std::vector<Check>& checks);
/// {"healthy", "checks": [{"name", "verdict", "measured", "limit", "advice"}]}, a newline behind.
std::string CheckJson(const std::vector<Check>& checks);

}  // namespace muster::agent::health
