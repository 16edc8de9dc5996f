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

/// Looks a variable up; ProcessEnv() is the process's own, tests give a map.
using EnvLookup = std::function<std::optional<std::string>(const std::string& name)>;
EnvLookup ProcessEnv();

struct WorkerEnv {
  Rank rank;                ///< RANK
  std::uint32_t world = 1;  ///< WORLD_SIZE
  std::uint32_t local_rank = 0;
  std::uint32_t local_world = 1;
  Generation generation{1};  ///< MUSTER_GENERATION
  int heartbeat_fd = -1;     ///< MUSTER_HEARTBEAT_FD: this rank's page (os/heartbeat.h)
  int arena_fd = -1;  ///< MUSTER_ARENA_FD: the generation's collective arena (coll/muster_coll.h)
  std::string run_folder;       ///< MUSTER_RUN; empty by hand
  std::string generation_file;  ///< MUSTER_GENERATION_FILE: compared at every checkpoint commit;
                                ///< empty by hand
  std::string
      checkpoint_dir;  ///< MUSTER_CHECKPOINT_DIR: absolute; empty: the program's own flag decides
  std::uint64_t checkpoint_every =
      0;  ///< MUSTER_CHECKPOINT_EVERY: steps; 0: the program's own flag decides
};

/// Invalid, naming the variable, when one is malformed or they contradict each other.
Result<WorkerEnv> ReadWorkerEnv(const EnvLookup& lookup);

/// "NAME=value" for every variable above, plus what torchrun sets from them (LOCAL_RANK,
/// GROUP_RANK, MASTER_ADDR, …).
std::vector<std::string> WriteWorkerEnv(const WorkerEnv& env);

}  // namespace muster::spec
