#pragma once
// logMonitoringConfiguration of a HyperPodPyTorchJob as log rules of a job. Internal to src/spec.

#include "spec/import/fields.h"

namespace muster::spec {

/// The list in `policy`. `several` nodes: a rule that waits for a line is about rank 0's.
void ReadLogMonitoring(Fields& policy, bool several, Import& import);

}  // namespace muster::spec
