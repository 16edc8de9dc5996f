#pragma once
// How to go on with the work of a run that ended before it was done: a command that can be typed.
// A run folder holds one run, so going on is a new run of the same job that finds the old one's
// checkpoints (docs/reference/run.md). Pure.

#include <string>
#include <string_view>

namespace muster::profile {

/// A word as a shell reads it back: quoted when it has to be.
std::string ShellWord(std::string_view text);

/// "muster run runs/a/job.yaml --checkpoint-dir runs/a/checkpoints". `folder` is the run's, as it
/// can be typed where the job's own relative paths hold; `job_yaml` its job.yaml.
std::string CommandToGoOn(const std::string& folder, const std::string& job_yaml);

}  // namespace muster::profile
