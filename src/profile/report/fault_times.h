#pragma once
// The time lost to each fault, by the definitions of docs/formats/run-folder.md, out of events and
// steps. Pure. Internal to the report.

#include <vector>

#include "profile/report/run_report.h"

namespace muster::profile {

inline constexpr std::size_t kMostFaults = 1000;

/// In the order in which they struck. Of several faults of one generation the first is kept: it
/// ended the generation, the others are its echo. The first kMostFaults of them.
std::vector<FaultReport> MeasureFaults(const RunRecords& run);

}  // namespace muster::profile
