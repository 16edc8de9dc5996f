#pragma once
// A manifest of SageMaker HyperPod's training operator (kind HyperPodPyTorchJob, apiVersion
// sagemaker.amazonaws.com/v1), read as it is, as a job: docs/reference/hyperpod.md has the table of
// its fields. Source of the names: the operator's documentation and its custom resource. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "spec/import/imported.h"

namespace muster::spec {

/// `file` is the name in errors. Invalid reports every fault of the manifest, a line each with its
/// place: malformed, an unknown key with a near miss, a field that cannot become a job.
/// `entry_point` is what the image starts by itself, for a container that has no command.
Result<ImportedJob> ImportHyperPod(std::string_view text, std::string_view file,
                                   const std::vector<std::string>& entry_point = {});

}  // namespace muster::spec
