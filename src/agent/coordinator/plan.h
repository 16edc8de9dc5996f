#pragma once
// The coordinator's decisions as pure functions. PlanRestart chooses the rung of the ladder after a
// fault; Advance is the state machine RUN → PAUSE → stop → COMMIT → RUN around it. Neither reads a
// clock, starts a process or touches a file; the run loop (run_loop.h) does, order by order, in the
// simulation (agent/simulation) on a virtual clock. The table of cases is plan_test.cc.

#include <string>
#include <vector>

#include "agent/coordinator/job_state.h"

namespace muster::agent {

/// What to do about a fault, and why, in words for people.
struct Decision {
  std::optional<RestartKind> restart;  ///< empty: the job fails with `verdict`
  Verdict verdict;                     ///< its reason says what struck, and `reason`
  std::string reason;                  ///< "process restart 1 of 3", "restarts are off"
};

/// `state.fault` is set. Rungs: the command cannot run, or is refused (exit code 2 in the first
/// generation before its first step) → fail; a program on our library refuses what it was given,
/// and nobody has worked yet → fail; dead zygote → a new one, broken
/// zygote → exec; same exception (but for its numbers) at the same step twice, and nobody came
/// further between → fail; no new durable step for 3
/// generations → fail (93); process restarts left → in place when that can be (MayGoOnInPlace),
/// else processes; full restarts left → full; else fail (93, or the worker's own code when restarts
/// are off).
Decision PlanRestart(const JobState& state, Instant now, const Policy& policy);

struct Plan {
  JobState next;
  std::vector<Action> actions;
  std::string reason;
};

/// Every event is legal in every phase; one that says nothing new (a stale generation, a second
/// report) leaves the state as it is.
Plan Advance(JobState state, const Event& event, Instant now, const Policy& policy);

/// What another coordinator does first, which finds the state of one that died: orders that may not
/// have been carried out are given again, and a start of which nobody knows how far it came is done
/// again as the next generation, with every rank.
Plan Resume(JobState state, Instant now, const Policy& policy);

/// Whether the generation that a fault struck can go on without it: some ranks live and can unwind,
/// the others failed or (IsLoading) can be killed, and restarts are allowed. A generation of this
/// kind that came to no step is tried again `most_stalled` times, and only when what struck it came
/// from outside: otherwise the survivors' memory may be the cause.
bool MayGoOnInPlace(const JobState& state, const Policy& policy);
/// A rank that this generation started beside survivors, and that has none of their state yet.
bool IsLoading(const JobState& state, const RankStatus& rank);
/// The furthest step that a rank finished in this generation; 0: none did.
std::uint64_t StepReached(const JobState& state);
/// It began in place, and nobody who lives has finished a step since.
bool CameToNoStep(const JobState& state);
/// Nobody is waited for any more: who lives stands at a step boundary.
bool AllQuiesced(const JobState& state);
/// The last step that a living rank has in its memory.
std::uint64_t HighestStep(const JobState& state);

/// "killed by SIGKILL", "exit code 3", "could not be started: …".
std::string Describe(const Ending& ending);
/// "rank 1 killed by SIGKILL at step 60", "ranks 1 and 3 killed by SIGKILL at step 60"
std::string Headline(const Fault& fault);
/// Who failed in the way of `state.fault`, beside its rank: no consequence of it, then. Of exit
/// codes those that have the same reason.
std::vector<Rank> OthersOf(const JobState& state);
/// A crash that comes out of the program itself, so that the same one may come again: an exit code,
/// or a signal that a program raises on itself.
bool IsOwnCrash(const Ending& ending);
/// A worker of ours that says with its exit code (spec/env.h) that it failed only because another
/// rank did. It is the fault of a generation only when no other rank fails in time.
bool IsFollower(const Ending& ending, bool steps);
/// When the time lost to the fault begins. Of a signal from outside nobody saw the moment: it
/// counts from the last sign of life, because who reports the death may have been stopped itself.
Instant DiedAt(const Fault& fault);

/// The fault of this generation came soon after its start, and is in every word the one of the
/// generation before: how a program fails that publishes no steps and cannot work at all, for
/// example one with a misspelt flag.
bool IsEarlyTwin(const JobState& state, const Policy& policy);
/// Of `state.fault`, which ends the run: its generation had nothing that could be lost, because the
/// command did not run or did not understand its words.
bool CameToNoWork(const JobState& state, const Policy& policy);
/// Restarts within one evaluation period before the run fails: a full restart gives the process
/// restarts back.
std::uint32_t MostRestarts(const Policy& policy);

/// Whether an errno of a worker's start says that the command itself cannot run; everything else
/// (memory, descriptors, processes) may be better the next time.
bool IsCommandAtFault(int start_error);
/// 128 + signal, the code itself, 126 or 127 for a command that cannot run.
int ExitCodeOf(const Ending& ending);

}  // namespace muster::agent
