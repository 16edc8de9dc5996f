#pragma once
// The pod template of a Kubernetes manifest as far as a job can say it: one container's command,
// environment and resources. Of everything else is written down why it is not taken. Internal to
// src/spec.

#include "spec/import/fields.h"
#include "spec/import/launcher.h"

namespace muster::spec {

/// What the operator puts into each container's environment, and the launcher is told with.
struct PodSurroundings {
  std::string nodes;           ///< NNODES
  std::string ranks_per_node;  ///< NPROC_PER_NODE
};

/// `value` is the PodTemplateSpec at `path`.
LauncherShape ReadPod(const Value& value, const std::string& path,
                      const PodSurroundings& surroundings, Import& import);

}  // namespace muster::spec
