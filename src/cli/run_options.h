#pragma once
// From a job and the flags of `muster run` to what the agent takes. Looks at the machine (PATH,
// cores, GPUs) but changes nothing, so a fault found here leaves no trace.

#include <string>
#include <vector>

#include "agent/run_job.h"
#include "base/result.h"
#include "cli/run_flags.h"
#include "spec/job.h"

namespace muster::cli {

/// The job of a file, or one made from the flags, checked. `program` is the path of this one.
Result<spec::Job> JobFor(const RunFlags& flags, const std::string& program);

/// The keys that the job sets and `muster run` keeps without acting on them yet.
std::vector<std::string> NotActedOn(const spec::Job& job);

/// `program` is this binary: muster-shim and muster-train are looked for beside it first.
Result<agent::RunOptions> OptionsFor(const spec::Job& job, const RunFlags& flags,
                                     const std::string& program);

}  // namespace muster::cli
