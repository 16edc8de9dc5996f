#pragma once
// Steps as series for a chart: each step once, as it was run last, neighbours joined into a bounded
// number of points that keep their least, mean and greatest value, so that a spike of one step in
// 10⁵ still shows. Pure. Internal to the report.

#include <vector>

#include "profile/report/run_report.h"

namespace muster::profile {

inline constexpr std::size_t kMostPoints = 300;      ///< of losses
inline constexpr std::size_t kMostTimePoints = 120;  ///< of step times: a tail needs some steps

/// Each step once, ordered by step: of equal ones the last row counts.
std::vector<StepRow> LastRuns(std::vector<StepRow> rows);

/// Each step once, in the order in which they ran: of equal ones the first row counts.
std::vector<StepRow> FirstRuns(const std::vector<StepRow>& rows);

/// Steps that `rows`, in the order in which they ran, had run before.
std::vector<ReplaySpan> FindReplays(const std::vector<StepRow>& rows);

/// `steps` as from LastRuns. Steps without a finite loss are left out.
std::vector<LossPoint> LossPoints(const std::vector<StepRow>& steps);

/// The rows with the time of their evaluation taken out, as if it stood between steps.
std::vector<StepRow> WithoutEvaluation(std::vector<StepRow> rows);

/// `ranks` holds the LastRuns of each rank.
StepTimes MeasureSteps(const std::vector<std::vector<StepRow>>& ranks);

}  // namespace muster::profile
