#pragma once
// What a command line in torchrun's words, and torchrun's variables, ask `muster run` for. A flag
// wins over its PET_ variable. What has no meaning is collected with its reason, to be said in one
// line. Pure: the machine is not looked at.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/env.h"
#include "spec/job.h"
#include "spec/torchrun/line.h"
#include "spec/torchrun/streams.h"

namespace muster::spec::torchrun {

/// How the script is run.
enum class Runner {
  kScript,   ///< python -u SCRIPT …
  kModule,   ///< python -u -m MODULE …
  kProgram,  ///< as it stands: --no-python
};

struct Settings {
  bool used = false;                          ///< a flag or a PET_ variable of torchrun was given
  std::optional<NodeRange> nodes;             ///< --nnodes
  std::optional<RanksPerNode> ranks;          ///< --nproc-per-node
  std::optional<std::uint32_t> max_restarts;  ///< --max-restarts
  std::optional<std::uint32_t> shutdown_s;    ///< --shutdown-timeout
  std::string role = "default";               ///< ROLE_NAME
  std::string run_id;                         ///< TORCHELASTIC_RUN_ID; empty: ours
  std::string log_dir;                        ///< where run folders are made; empty: runs
  Runner runner = Runner::kScript;
  bool virtual_local_rank = false;
  ShownStreams shown;       ///< on the console
  std::string line_prefix;  ///< template of what stands before a line there; empty: ours
  std::string interpreter;  ///< PYTHON_EXEC; empty: to be found
  /// "--rdzv-backend, --master-port (ranks, addresses and ports come from muster run itself); …"
  std::string ignored;
};

/// `lookup` gives PET_ and torchrun's other variables; a job file is not to be changed by them:
/// none are read where the line has one. Invalid names the flag or variable and its value;
/// Precondition: XPUs.
Result<Settings> ReadSettings(const RunLine& line, const EnvLookup& lookup);

/// torchrun's TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE with ${role_name}, ${rank} and ${local_rank}
/// put in; every other text stays.
std::string LinePrefix(std::string_view format, std::string_view role, std::uint32_t rank,
                       std::uint32_t local_rank);

}  // namespace muster::spec::torchrun
