#pragma once
// The environment that Muster gives to a worker, and the only place that reads the environment.
// torchrun's variables come along unchanged, so an unmodified PyTorch script finds what it expects;
// the MUSTER_ ones are for programs on our library.
//
// A worker that was started by hand has none of them: rank 0 of 1, generation 1, no descriptors.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/strong_id.h"

namespace muster::spec {

/// The exit code of a worker that failed only because another rank did: nothing of its own went
/// wrong. The host waits for that other rank's end and takes that for the cause.
inline constexpr int kFollowerExit = 95;

/// Looks a variable up; ProcessEnv() is the process's own, tests give a map.
using EnvLookup = std::function<std::optional<std::string>(const std::string& name)>;
EnvLookup ProcessEnv();
/// "NAME=value", for us and our children.
void SetVariable(const std::string& line);
/// A secret that has been read is not for children.
void ForgetVariable(const std::string& name);
/// Every "NAME=value" of the process, for a child that inherits them.
std::vector<std::string> ProcessEnviron();
/// `base` with the variables of `changes` set, each name once, sorted by name.
std::vector<std::string> MergeEnviron(std::vector<std::string> base,
                                      const std::vector<std::string>& changes);

struct WorkerEnv {
  Rank rank;                ///< RANK
  std::uint32_t world = 1;  ///< WORLD_SIZE
  std::uint32_t local_rank = 0;
  std::uint32_t local_world = 1;
  Generation generation{1};  ///< MUSTER_GENERATION
  int heartbeat_fd = -1;     ///< MUSTER_HEARTBEAT_FD: this rank's page (os/heartbeat.h)
  int arena_fd = -1;  ///< MUSTER_ARENA_FD: the generation's collective arena (coll/muster_coll.h)
  int recovery_fd = -1;    ///< MUSTER_RECOVERY_FD: to outlive other ranks (os/recovery_link.h)
  std::string run_folder;  ///< MUSTER_RUN; empty by hand
  /// MUSTER_GENERATION_FILE: compared at every checkpoint commit; empty by hand.
  std::string generation_file;
  /// MUSTER_CHECKPOINT_DIR: absolute; empty: the program's own flag decides.
  std::string checkpoint_dir;
  /// MUSTER_CHECKPOINT_EVERY: steps; 0: the program's own flag decides.
  std::uint64_t checkpoint_every = 0;
  std::vector<std::string> data;  ///< MUSTER_DATA_0, …: where each entry of the job's `data` is

  std::string master_addr = "127.0.0.1";  ///< MASTER_ADDR; written with a port only
  std::uint16_t master_port = 0;          ///< MASTER_PORT: of muster run's TCPStore; 0: not written
  std::uint32_t restart_count = 0;        ///< TORCHELASTIC_RESTART_COUNT
  std::uint32_t max_restarts = 0;         ///< TORCHELASTIC_MAX_RESTARTS
  std::string role = "default";           ///< ROLE_NAME
  /// LOCAL_RANK is 0 whatever local_rank is: the rank's device is the only one that it sees.
  bool virtual_local_rank = false;
  std::string visible_devices;  ///< CUDA_VISIBLE_DEVICES; empty: not written
  /// TORCH_NCCL_ASYNC_ERROR_HANDLING; what the caller has set stays.
  std::string nccl_error_handling = "1";
  std::string run_id;             ///< TORCHELASTIC_RUN_ID; "none" when empty, as torchrun has it
  std::string error_file;         ///< TORCHELASTIC_ERROR_FILE: where a script leaves its exception
  std::uint32_t omp_threads = 0;  ///< OMP_NUM_THREADS; 0: not written
  bool unbuffered = false;  ///< PYTHONUNBUFFERED: what a script prints is seen, and survives it
};

/// Invalid, naming the variable, when one is malformed or they contradict each other.
Result<WorkerEnv> ReadWorkerEnv(const EnvLookup& lookup);

/// "NAME=value" for every variable above that has a value, plus what torchrun 2.13 sets from them
/// (GROUP_RANK, ROLE_RANK, …). TORCHELASTIC_USE_AGENT_STORE is True: muster run
/// serves the store at master_port. Ranks are laid out node by node, local_world on each.
std::vector<std::string> WriteWorkerEnv(const WorkerEnv& env);

}  // namespace muster::spec
