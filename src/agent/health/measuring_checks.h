#pragma once
// The checks that use the machine for a moment: write and read, copy, compute, connect, start a
// Python. Each Measure… is bounded in time; each Judge… is the pure verdict on its figures.

#include <chrono>
#include <string>
#include <vector>

#include "agent/health/check.h"
#include "agent/health/sight.h"

namespace muster::agent::health {

struct FolderNeeds {
  std::string name;    ///< of the check: "disk", "shm"
  std::string folder;  ///< it is there
  Bytes probe;         ///< written, synced, read back and removed
  Bytes fail_below;    ///< free
  Bytes warn_below;
};

/// Free space, then a file that is written, synced, read back, compared and removed.
Check CheckFolder(const Sight& sight, const FolderNeeds& needs);

/// What one core did in a second of its own time, whoever else used it.
struct CoreSpeed {
  unsigned core = 0;
  double rate = 0;
};
std::vector<CoreSpeed> MeasureCores(std::chrono::milliseconds each);
/// Cores below 0.7 of the median are named.
Check JudgeCores(const std::vector<CoreSpeed>& cores);

/// Bytes copied a second by one thread, read and written together counted once.
double MeasureBandwidth(std::chrono::milliseconds time);
Check JudgeBandwidth(double bytes_per_s);

/// Whether a control group for a job can be made, beside `id`'s.
Check CheckJobCgroup(const std::string& id);
/// A connection to ourselves, and a byte through it.
Check CheckLoopback();
/// Whether `python` starts and imports torch, with `environment`.
Check CheckPython(const std::string& python, const std::vector<std::string>& environment,
                  std::chrono::seconds most);

}  // namespace muster::agent::health
