#pragma once
// What the coordinator knows about a job, what can happen to it and what it may order. Plain
// values: plan.h decides over them, the run loop fills them in and carries the orders out.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/strong_id.h"

namespace muster::agent {

using std::chrono::nanoseconds;

/// What the user allows, from the job's `restart` (HyperPod: jobMaxRetryCount …).
struct Policy {
  std::uint32_t process_restarts = 3;  ///< before a full restart
  std::uint32_t full_restarts = 1;
  std::optional<std::uint32_t> total_restarts;  ///< of both kinds, in the whole life of the run
  bool in_place = true;
  nanoseconds eval_period = std::chrono::hours(6);
  nanoseconds gather = std::chrono::milliseconds(20);   ///< for further faults of the same cause
  nanoseconds follower_wait = std::chrono::seconds(5);  ///< for the cause, after a follower's end
  nanoseconds grace = std::chrono::seconds(30);         ///< TERM to KILL, foreign programs
  nanoseconds start_limit = std::chrono::seconds(60);   ///< until every worker was started
  nanoseconds stop_limit = std::chrono::seconds(10);    ///< for the shim's answer, beside the grace
  nanoseconds quiesce = std::chrono::seconds(2);  ///< for a survivor to unwind, or 3 of its steps
  nanoseconds kill_limit = std::chrono::seconds(1);  ///< the same, for a user who lost patience
  nanoseconds early = std::chrono::seconds(30);      ///< a fault this soon after the start is early
  std::uint32_t no_progress_limit = 3;               ///< generations without a new durable step
  std::uint32_t most_stalled = 1;  ///< generations in place, in a row, that may come to no step
};

enum class RankState { kIdle, kStarting, kRunning, kFinished, kFailed, kStopped };

/// A log rule of the job, and what it saw.
struct RuleKill {
  std::string name{};
  std::string why{};
};

/// How a worker ended, or why it never began.
struct Ending {
  int code = 0;
  int signal = 0;
  int start_error = 0;  ///< errno of what led to the program: it never ran
  bool never_found =
      false;  ///< the command itself is at fault: it will not run the next time either
  Instant time;
  std::string hang{};    ///< what it hung in; it was killed for that
  bool still = false;    ///< that was seen by its process, not by a heartbeat
  RuleKill rule{};       ///< it was killed for that
  std::string advice{};  ///< what start_error means here and what to do about it
  /// Processes of this run on its host that the kernel had ended by then because memory ran out,
  /// and that no rank before it went down with. Whether it was one of them is not known.
  std::uint64_t oom_kills = 0;
  /// What it went down with: "node n2: the connection closed", "the shim of node n2, killed by …".
  std::string with{};
  bool ok() const { return code == 0 && signal == 0 && start_error == 0; }
};

struct RankStatus {
  RankState state = RankState::kIdle;
  bool steps = false;         ///< it publishes steps through the heartbeat in this generation
  std::uint64_t step = 0;     ///< the last it finished
  std::uint64_t durable = 0;  ///< the newest in a committed checkpoint
  Generation spawned;         ///< in which its process was started
  bool carries = false;       ///< its process can outlive another rank's death
  bool quiesced = false;      ///< it unwound and waits for the next generation
  bool doomed = false;        ///< it is killed: it cannot unwind, and the others go on without it
  bool refused = false;       ///< it says that another start would end in the same way
  Instant alive;              ///< when its heartbeat moved last
  std::optional<Ending> ending;
  std::string exception;  ///< last line of its stderr, when it ended by itself
};

/// The fault that a generation died of.
struct Fault {
  Rank rank;
  Generation generation;
  Generation spawned;  ///< in which its process was started: that of its logs
  Ending ending;
  std::uint64_t step = 0;
  bool steps = false;
  bool refused = false;
  std::string exception;
  Instant alive;               ///< of the heartbeat, when there is one
  nanoseconds lived{};         ///< from the start of its generation
  std::vector<Rank> others{};  ///< that ended in the same way, beside it
};

enum class Phase {
  kIdle,
  kStarting,   ///< a generation's workers are being started
  kRunning,    ///< all of them run, or have finished
  kGathering,  ///< a fault was seen; others of the same cause are awaited for a moment
  kQuiescing,  ///< survivors unwind to a step boundary; then the next generation starts with them
  kStopping,   ///< survivors are being stopped; then the next generation starts
  kEnding,     ///< everything is being stopped for good
  kEnded,
};

enum class RestartKind {
  kInPlace,    ///< the dead ranks only; the others keep their process and what is in its memory
  kProcesses,  ///< the workers, from the same zygote
  kNewZygote,  ///< the workers, from a new zygote: the last one died while it was needed
  kExec,       ///< the workers, without the zygote, which is broken
  kFull,       ///< shim and zygote too; an order, also in the place of a shim that was lost
};

/// How the run ends.
struct Verdict {
  bool succeeded = false;
  int exit_code = 0;
  std::string reason;
};

struct JobState {
  Phase phase = Phase::kIdle;
  Generation generation;  ///< 0 before the first
  std::vector<RankStatus> ranks;
  bool use_zygote = false;
  bool zygote_served = false;  ///< a worker was forked in this run: it can be done
  bool without_shim = false;   ///< it was lost: the next start brings another

  Instant deadline;                 ///< of every phase but kIdle, kRunning and kEnded
  nanoseconds slowest_step{};       ///< lately, of any rank
  bool aborted = false;             ///< the collectives of this generation
  bool begun = false;               ///< its workers were asked for, and survivors know of it
  bool in_place = false;            ///< this generation began in place
  std::uint32_t stalled = 0;        ///< before this one, in a row: in place and without a step
  std::uint64_t resumed_at = 0;     ///< in_place: behind this step
  std::optional<Fault> fault;       ///< of this generation
  std::optional<Fault> last_fault;  ///< of the one before
  /// What the next crash is held against: those behind whose step no later generation came.
  std::vector<Fault> crashes;
  Instant began;                    ///< this generation
  bool worked = false;              ///< a rank finished a step in this run
  std::uint32_t early_twins = 0;    ///< faults in a row that were the early twin of the one before
  std::optional<RestartKind> next;  ///< kStopping: what comes after
  bool counted = false;             ///< kStopping: as a restart, by a start that is done again
  std::optional<Verdict> verdict;   ///< kEnding: what it will be
  int interrupts = 0;               ///< SIGINT only: the user's own, who may lose patience

  std::vector<Instant> process_restarts;  ///< within the evaluation period, since the last full one
  std::vector<Instant> full_restarts;
  std::uint32_t restarts = 0;  ///< all of them
  std::uint64_t best_durable = 0;
  std::uint64_t best_applied = 0;      ///< that survivors carried over a fault
  std::uint32_t without_progress = 0;  ///< generations in a row
};

struct Event {
  enum class Kind {
    kStart,
    kResized,    ///< ranks: the generation that starts has so many
    kLoading,    ///< the zygote still loads, or just did: the limit of a start counts from here
    kStarted,    ///< rank, generation
    kExited,     ///< rank, generation (of its start), ending (start_error: it never ran)
    kNodeLost,   ///< rank, ranks, ending: so many from that one on, as far as they live, at once
    kTick,       ///< time passed
    kCarries,    ///< rank, generation: it can outlive another rank's death
    kQuiesced,   ///< rank, generation: it unwound and waits
    kStopped,    ///< nothing of the workers is left
    kInterrupt,  ///< signal: the user or the system wants the run to end
    kShimLost,   ///< the parent of all workers; that they went with it is said too (kNodeLost)
    kGiveUp,     ///< text, ending.code: an order cannot be carried out, or the time is up
    kBegun,      ///< generation: its workers were asked for, and the survivors told of it
  };
  Kind kind = Kind::kTick;
  Rank rank{};
  Generation generation{};
  Ending ending{};
  std::string text{};  ///< exception line of kExited, reason of kGiveUp
  int signal = 0;
  int pid = 0;              ///< kExited, for the record; 0: it never ran
  std::uint32_t ranks = 0;  ///< kResized, kNodeLost
};

struct Action {
  enum class Kind {
    kAbort,       ///< the collectives: whoever can unwinds
    kKill,        ///< rank: it cannot unwind; its end follows
    kStartRanks,  ///< those in kStarting, as `generation`, after it is on disk; others go on in it
    kStop,        ///< signal, grace (0: kill at once); answered by kStopped
    kEnd,         ///< the run is over: verdict
  };
  Kind kind = Kind::kEnd;
  Rank rank{};
  Generation generation{};
  RestartKind restart = RestartKind::kProcesses;
  int signal = 0;
  nanoseconds grace{};
};

}  // namespace muster::agent
