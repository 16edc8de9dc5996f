#pragma once
// How to go on with the work of a run that ended before it was done: a command that can be typed.
// A run folder holds one run, so going on is a new run of the same job that finds the old one's
// checkpoints (docs/reference/run.md). Looks at the disk, changes nothing.

#include <string>
#include <string_view>
#include <vector>

namespace muster::profile {

/// A word as a shell reads it back: quoted when it has to be.
std::string ShellWord(std::string_view text);

/// "# flags: --grace 5\n", the last line of a run folder's job.yaml: flags of `muster run` that a
/// job cannot hold. "" without words. CommandToGoOn leaves out a line that would be more than words
/// to a shell.
std::string FlagsLine(const std::vector<std::string>& words);

/// "cd /data && muster run /data/runs/a/job.yaml --checkpoint-dir
/// /data/runs/a/checkpoints". `folder` is the run's, as it can be typed in `cwd`, where the
/// job's own relative paths hold; `job_yaml` its job.yaml. Without `cwd`: to be typed there. A
/// folder of checkpoints is named only when something was saved in it.
std::string CommandToGoOn(const std::string& folder, const std::string& job_yaml,
                          const std::string& cwd = {});

}  // namespace muster::profile
