#pragma once
// The flags of `muster run`: ours, as CLI11 fills them, beside torchrun's (spec/torchrun), and
// which of them a run that is gone on with needs again.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/env.h"
#include "spec/torchrun/settings.h"

namespace CLI {
class App;
}

namespace muster::cli {

struct RunFlags {
  std::vector<std::string> words;     ///< JOB.yaml, or the script or command
  spec::torchrun::RunLine line;       ///< torchrun's flags, as typed
  spec::torchrun::Settings torchrun;  ///< of its flags and variables
  std::optional<std::uint32_t> ranks;
  std::optional<double> grace_s;
  std::optional<double> hang_limit_s;
  std::optional<double> node_lease_s;
  std::string name;
  std::string folder;
  std::string preload = "auto";  ///< auto, none or modules with commas
  std::string checkpoint_dir;    ///< instead of the job's; relative to the working folder
  std::string line_prefix;       ///< wins over torchrun's variable
  std::string nodes;             ///< hosts, with commas
  std::string ssh;               ///< how they are reached
  std::string listen;            ///< where agents of other nodes dial: HOST:PORT
  std::string kernel_log;        ///< followed instead of /dev/kmsg
  bool restart_all = false;
  bool report_hangs = false;
  bool quiet = false;
};

/// Our own options and the positional; `flags` lives as long as `run`.
void AddRunFlags(CLI::App& run, RunFlags& flags);

/// What CLI11 does not fill. Invalid names a flag with its value, or two flags of one meaning.
Status ReadTorchrun(const spec::torchrun::RunLine& line, const spec::EnvLookup& lookup,
                    RunFlags& flags);

/// What becomes of a flag when the run is gone on with from its job.yaml.
struct Lasting {
  std::string_view flag;  ///< long name, ours or torchrun's
  std::string_view why;   ///< it need not be typed again; empty: it must be
  std::vector<std::string> (*words)(const RunFlags&) = nullptr;  ///< then: what to type
};

/// Every flag that has a meaning, each once.
std::span<const Lasting> LastingFlags();

/// The flags that a job file cannot hold, as words to type behind it.
std::vector<std::string> WordsToGoOn(const RunFlags& flags);

}  // namespace muster::cli
