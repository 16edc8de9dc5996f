#pragma once
// The report as one self-contained HTML page: no script, no external resource, a content security
// policy that forbids both, inline SVG, light and dark by the reader's preference, 360 px to wide.
// Everything from the run folder is escaped; below 1 MB for any run. Pure.

#include <string>

#include "profile/report/run_report.h"

namespace muster::profile {

std::string ReportPage(const RunReport& report);

}  // namespace muster::profile
