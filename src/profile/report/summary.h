#pragma once
// The report in a few lines for a terminal: what `muster show` prints. Pure.

#include <string>

#include "profile/report/run_report.h"

namespace muster::profile {

/// Plain text, no colour, lines below 100 columns where names allow it.
std::string SummaryText(const RunReport& report);

}  // namespace muster::profile
