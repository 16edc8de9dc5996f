#pragma once
// runPolicy of a HyperPodPyTorchJob: budgets of restarts, limits of time and log rules. Internal to
// src/spec.

#include "spec/import/fields.h"

namespace muster::spec {

/// `several` nodes: a rule that waits for a line is about rank 0's.
void ReadRunPolicy(const Value& value, const std::string& path, bool several, Import& import);

}  // namespace muster::spec
