#pragma once
// The report as JSON, format "muster-report/1" (docs/formats/report.md). Pure.

#include <string>

#include "profile/report/run_report.h"

namespace muster::profile {

/// One object, indented, keys in a fixed order, with a newline at the end.
std::string ReportJson(const RunReport& report);

}  // namespace muster::profile
