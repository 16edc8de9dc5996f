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
#include "spec/torchrun/settings.h"

namespace muster::cli {

struct RunFlags {
  std::vector<std::string> words;  ///< JOB.yaml, or the script or command
  spec::torchrun::RunLine::Form form = spec::torchrun::RunLine::Form::kNothing;
  spec::torchrun::Settings torchrun;  ///< of its flags and variables
  bool nproc_given = false;           ///< --nproc-per-node, not its variable
  std::optional<std::uint32_t> ranks;
  std::optional<double> grace_s;
  std::string name;
  std::string folder;
  std::string preload = "auto";  ///< auto, none or modules with commas
  std::string checkpoint_dir;    ///< instead of the job's; relative to the working folder
  bool restart_all = false;
  bool report_hangs = false;
  bool quiet = false;
};

/// The job of a file, or one made from the flags, checked. `program` is the path of this one.
Result<spec::Job> JobFor(const RunFlags& flags, const std::string& program);

/// The keys that the job sets and `muster run` keeps without acting on them yet.
std::vector<std::string> NotActedOn(const spec::Job& job);

/// `program` is this binary: muster-shim and muster-train are looked for beside it first.
Result<agent::RunOptions> OptionsFor(const spec::Job& job, const RunFlags& flags,
                                     const std::string& program);

}  // namespace muster::cli
