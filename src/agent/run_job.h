#pragma once
// `muster run`: one job on this host, from the first worker to the last, faults included. The value
// says how it ended; everything else is in the run folder.
//
// Called once a process, from its main thread, before it has other threads: it blocks signals,
// becomes a subreaper and ignores SIGPIPE.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/coordinator/job_state.h"
#include "agent/logs/console.h"
#include "agent/logs/rank_display.h"
#include "base/result.h"
#include "spec/log_rule.h"

namespace muster::agent {

/// What to do about a rank that hangs (coordinator/hang_watch.h).
enum class OnHang {
  kRestart,  ///< it is killed, and the run recovers as from any death
  kReport,   ///< said only
};

struct RunOptions {
  std::string name;
  std::uint32_t ranks = 1;         ///< of the job, on all nodes
  std::uint32_t nodes = 1;         ///< at most; `ranks` are those of so many
  std::uint32_t least_nodes = 1;   ///< with so many it starts, and goes on
  bool leads_only = false;         ///< this host is none of them; else it is the first
  std::vector<std::string> hosts;  ///< on which agents are started by ssh
  std::vector<std::string> ssh;    ///< how
  /// Where agents of other nodes dial; empty: the address towards them, any free port.
  std::string listen;
  std::vector<std::string> flags;    ///< of `muster run`, for agents: what job_yaml cannot hold
  std::string program;               ///< absolute path of the command
  std::vector<std::string> command;  ///< argv; the first is what the user wrote
  std::string folder;                ///< of the run; empty: PARENT/NAME-TIME-xxxx
  std::string parent = "runs";       ///< of a folder that is named here
  std::string job_yaml;              ///< for the record
  std::string version;               ///< of muster
  std::string shim;                  ///< absolute path of muster-shim
  /// argv of the process that ranks are copied from, its program that of the command; empty:
  /// every rank is executed.
  std::vector<std::string> zygote;
  std::string preload;  ///< what a Python zygote imports, for who waits for it
  std::string checkpoint_dir = "checkpoints";  ///< relative to the run folder
  std::uint64_t checkpoint_every = 0;
  std::vector<std::string> data;  ///< MUSTER_DATA_0, …
  std::optional<nanoseconds> time_limit;
  Policy policy;
  OnHang on_hang = OnHang::kRestart;
  /// How long ranks without heartbeat may stand still; none: that is only told.
  std::optional<nanoseconds> hang_limit;
  nanoseconds node_lease = std::chrono::seconds(15);  ///< how long a node may be silent
  std::vector<spec::LogRule> log_rules;
  std::string role = "default";  ///< ROLE_NAME
  std::string run_id;            ///< TORCHELASTIC_RUN_ID; empty: the run's own
  /// CUDA_VISIBLE_DEVICES by rank, and LOCAL_RANK is 0: torchrun's --virtual-local-rank. Empty:
  /// ranks see every device.
  std::vector<std::string> devices;
  std::vector<RankDisplay> display;  ///< on the console, by rank; empty: as it is by default
  std::string kernel_log;            ///< followed while the job runs; empty: none
  bool quiet = false;                ///< no lines of workers on the console
  bool json = false;                 ///< stdout belongs to the result: workers' lines go to stderr
};

struct RunOutcome {
  int exit_code = 0;
  std::string result_json;   ///< as in result.json
  bool hung_writer = false;  ///< a log write hangs in the kernel; leave by _exit
};

/// What the user sees of its workers' lines.
ConsoleOptions ConsoleFor(const RunOptions& options);

/// Errors are those from before the first worker: folder, lock, shim. From then on the outcome says
/// what happened.
Result<RunOutcome> RunJob(const RunOptions& options);

}  // namespace muster::agent
