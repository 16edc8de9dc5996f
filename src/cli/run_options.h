#pragma once
// From a job and the flags of `muster run` to what the agent takes. Looks at the machine (PATH,
// cores, GPUs) but changes nothing, so a fault found here leaves no trace.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/run_job.h"
#include "base/result.h"
#include "spec/job.h"

namespace muster::cli {

struct RunFlags {
  std::vector<std::string> words;  ///< JOB.yaml, or the command
  std::optional<std::uint32_t> ranks;
  std::optional<std::uint32_t> max_restarts;
  std::optional<double> grace_s;
  std::string name;
  std::string folder;
  std::string preload = "auto";  ///< auto, none or modules with commas
  std::string checkpoint_dir;    ///< instead of the job's; relative to the working folder
  bool quiet = false;
};

/// The job of a file, or one made from the flags, checked.
Result<spec::Job> JobFor(const RunFlags& flags);

/// The keys that the job sets and `muster run` keeps without acting on them yet.
std::vector<std::string> NotActedOn(const spec::Job& job);

/// `program` is this binary: muster-shim and muster-train are looked for beside it first.
Result<agent::RunOptions> OptionsFor(const spec::Job& job, const RunFlags& flags,
                                     const std::string& program);

}  // namespace muster::cli
