#pragma once
// The launcher that a container starts (hyperpodrun, torchrun, python -m torch.distributed.run):
// what it is told becomes keys of the job, and what it starts the job's command. A program that is
// no launcher is the command. Internal to src/spec.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/import/fields.h"

namespace muster::spec {

/// What stands behind `command` and `args` of a container, references to variables replaced.
struct ContainerWords {
  std::vector<std::string> words;
  const Value* from = nullptr;  ///< for places
  std::string path;             ///< "….containers[0].command"
};

/// What a launcher's own flags say; the manifest's keys say the same, and are asked first.
struct LauncherShape {
  std::optional<NodeRange> nodes;
  std::optional<RanksPerNode> ranks;
};

/// Fills `import.out.job.command`, notes what became of each flag.
LauncherShape ReadLauncher(const ContainerWords& container,
                           const std::map<std::string, std::string, std::less<>>& variables,
                           Import& import);

}  // namespace muster::spec
