#pragma once
// Starts the workers of a generation: pipes to the log keeper, environment, a new arena for the
// collectives and one request a rank to the shim. Owner: the node runner.

#include <cstdint>
#include <string>
#include <vector>

#include "agent/keep/kept.h"
#include "agent/launch/rank_links.h"
#include "agent/launch/rank_range.h"
#include "agent/launch/shim_client.h"
#include "agent/logs/log_keeper.h"
#include "agent/node/heartbeat_pages.h"
#include "agent/run_job.h"
#include "base/fd.h"

namespace muster::agent {

/// What a worker is told of the generation that it is started in.
struct GenerationFacts {
  Generation generation;
  std::uint32_t restart_count = 0;
  std::uint32_t world = 0;    ///< ranks of the job
  std::string master_addr{};  ///< of its TCPStore
  std::uint16_t master_port = 0;
};

struct GenerationStart {
  GenerationFacts facts;
  bool via_zygote = false;
  std::vector<Rank> ranks;      ///< to be started
  std::vector<Rank> keepers{};  ///< that wait to go on in it
};

/// Where what a worker says goes.
struct WorkerSinks {
  LogKeeper& logs;
  HeartbeatPages& pages;
  RankLinks& links;
  Kept& kept;  ///< for who follows us: RankName of each rank, and kArenaName
};

inline constexpr const char* kArenaName = "arena";
inline constexpr const char* kShimName = "shim";  ///< its socket and its pidfd
/// Under which the descriptors of a rank are kept: stdout and stderr (read ends), then our end of
/// its link when it has one.
std::string RankName(Rank rank);

/// Of the collectives' memory, a sparse file of the ranks of one node.
inline constexpr std::uint64_t kArenaBytesPerRank = 256u << 20;

class Launcher {
 public:
  /// Of the job's ranks those of this node. `run_folder` is absolute. The options outlive the
  /// launcher.
  static Result<Launcher> Create(const RunOptions& options, RankRange ranks,
                                 const std::string& run_folder, const std::string& run_id);

  /// The node's ranks begin with `first`; before any Start.
  void Seat(std::uint32_t first) { ranks_.first = first; }

  /// Sends the request; whether it lives is said by the shim (Zygote). Its output goes to
  /// logs/zygote.log, or nowhere when that cannot be opened.
  Status StartZygote(ShimClient& shim);
  /// A new arena; asks for every rank that is to be started and lets the keepers go on.
  /// An error leaves the ranks before it asked for: a Stop ends them.
  Status Start(const GenerationStart& start, ShimClient& shim, const WorkerSinks& sinks);
  /// The arena of a generation that another process of ours started; invalid: it has none.
  void Adopt(Fd arena) { arena_ = std::move(arena); }
  /// Whoever is in a collective of the newest generation, or enters one, gets an error.
  void AbortCollectives(const std::string& reason);

  /// What OMP_NUM_THREADS is set to; 0: the user has set it.
  std::uint32_t omp_threads() const { return omp_threads_; }
  std::string ErrorFile(Rank rank, Generation generation) const;
  /// What a worker found, with the values of all variables that are not ours hidden.
  std::vector<std::string> RedactedEnvironment(Rank rank, const GenerationFacts& facts) const;

 private:
  Launcher(const RunOptions& options, RankRange ranks, std::string run_folder, std::string run_id,
           Fd null)
      : options_(&options),
        ranks_(ranks),
        run_folder_(std::move(run_folder)),
        run_id_(std::move(run_id)),
        null_(std::move(null)) {}
  Status StartRank(Rank rank, const GenerationStart& start, ShimClient& shim,
                   const WorkerSinks& sinks);
  std::vector<std::string> OwnEnvironment(Rank rank, const GenerationFacts& facts) const;

  std::vector<std::string> InterfaceVariables(const GenerationFacts& facts) const;

  const RunOptions* options_;
  RankRange ranks_;
  std::string run_folder_;
  std::string run_id_;
  Fd null_;
  std::string cwd_;
  std::uint32_t umask_ = 022;
  std::uint32_t omp_threads_ = 0;
  bool unbuffered_ = false;
  bool names_gloo_ = false, names_nccl_ = false;  ///< the user names their interface
  std::string nccl_error_handling_;
  Fd arena_;
};

/// Cores that this process may use.
std::uint32_t AvailableCores();

}  // namespace muster::agent
