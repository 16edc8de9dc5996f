#pragma once
// What happened in a run, as plain data: what `muster report` prints as JSON and draws as a page
// and `muster show` says in a few lines. BuildReport makes it out of the records alone and decides
// nothing by the clock. Pure; values.
//
// Times are seconds since the run was created; durations seconds. What recovery, lost and goodput
// are is defined in docs/formats/report.md. In series, a step that was run again counts as it was
// run last. What is not known is empty.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/report/read_run.h"

namespace muster::profile {

enum class RunState {
  kSucceeded,
  kFailed,
  kRunning,  ///< no result yet, the lock is held
  kLost,     ///< no result to be read, nobody holds the lock: muster run ended without a word
};
std::string_view NameOf(RunState state);

/// One worker process.
struct WorkerSpan {
  std::uint32_t rank = 0;
  std::uint64_t generation = 0;
  double begin = 0;
  std::optional<double> end;  ///< empty: not known to have ended
  std::int64_t pid = 0;
  std::string how;
  std::string exit;   ///< "SIGKILL", "code 1"; empty while it runs
  std::string cause;  ///< "fault", "stopped", "finished"
};

struct GenerationSpan {
  std::uint64_t generation = 0;
  double begin = 0;
  std::optional<double> ready;  ///< every rank finished its first step
  std::optional<std::uint64_t> resume_step;
};

struct FaultReport {
  std::uint64_t generation = 0;
  std::uint32_t rank = 0;
  std::string cause;
  std::string exit;
  std::vector<std::uint32_t> others;  ///< ranks that had died too when it was decided on
  std::string what;                   ///< "killed by SIGKILL", of fault-G.json as the next two
  std::string exception;              ///< the last line of its stderr
  std::string decision;               ///< what was done about it
  std::optional<std::uint64_t> step;  ///< the last that the rank had finished
  double died = 0;
  std::optional<double> paused;     ///< … detect ends
  std::optional<double> stopped;    ///< … stop ends
  std::optional<double> restarted;  ///< all workers of the next generation were started
  std::optional<double> stepping;   ///< every rank began a step again: start ends. Without steps
                                    ///< in the records: `restarted`
  std::optional<double> caught_up;  ///< every step that had been done is done again: replay ends
  std::optional<double> cut;        ///< the next fault or the run's end came first
  LostSeconds lost;                 ///< up to the last of them that is known
  bool steps_known = true;          ///< some rank reports its steps
  bool no_step_left = false;  ///< the run succeeded without another: `stepping` is `restarted`
  /// Every rank was at work again.
  bool recovered() const { return stepping.has_value(); }
  /// The run went on, be it to the next fault only.
  bool survived() const { return recovered() || cut.has_value(); }
  /// Until every rank was training again.
  std::optional<double> recovery() const {
    return recovered() && steps_known ? std::optional(*stepping - died) : std::nullopt;
  }
};

struct CheckpointMark {
  double at = 0;
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
};

/// Neighbouring steps as one point.
struct LossPoint {
  std::uint64_t first_step = 0;
  std::uint64_t last_step = 0;
  double min = 0;
  double mean = 0;
  double max = 0;
  double smooth = 0;  ///< exponential mean up to last_step
};

struct StepTimePoint {
  std::uint64_t first_step = 0;
  std::uint64_t last_step = 0;
  double mean = 0;
  double p95 = 0;
  double max = 0;
  std::array<double, kPhases> phase{};  ///< means; what is missing to `mean` was not attributed
};

struct StepTimes {
  std::uint64_t samples = 0;  ///< steps times ranks
  double median = 0;
  double p95 = 0;
  double max = 0;
  std::array<double, kPhases> phase{};  ///< means
  std::vector<StepTimePoint> points;
};

struct ReplaySpan {
  std::uint64_t first_step = 0;
  std::uint64_t last_step = 0;
  std::uint64_t generation = 0;  ///< that ran them again
};

/// Where the wall time went, on rank 0. They add up to `wall`: a step that a replay ran is in
/// `lost` only. All 0 without `steps`: nobody knows then.
struct TimeBudget {
  double startup = 0;  ///< until its first step
  double training = 0;
  double lost = 0;    ///< faults, replay included
  double ending = 0;  ///< after its last step
  double other = 0;   ///< between steps
};

struct RunReport {
  RunFacts facts;
  RunState state = RunState::kLost;
  std::optional<std::int64_t> exit_code;
  std::string reason;
  std::string result_unread;  ///< why result.json, which is there, tells nothing
  std::string ended_utc;
  std::string command;
  std::string go_on;  ///< what to type to do the rest; empty: all is done, or there is no way on
  double wall = 0;    ///< up to the end, until now while it goes on, else to the last record
  std::optional<std::uint64_t> steps;  ///< the last that was finished; empty: none is reported
  std::uint64_t restarts = 0;
  std::vector<GenerationSpan> generations;
  std::vector<WorkerSpan> workers;
  std::vector<FaultReport> faults;
  bool faults_known = true;  ///< false: the records lack events, or some of the restarts' faults
  LostSeconds lost;          ///< to all faults
  std::vector<CheckpointMark> checkpoints;
  std::vector<EvalRow> evals;  ///< by step, each once
  std::vector<LossPoint> losses;
  std::uint64_t losses_not_finite = 0;
  std::vector<ReplaySpan> replays;
  StepTimes step_times;
  StepTimes train_times;          ///< the same without what evaluation took: what the page draws
  double evaluating = 0;          ///< seconds of a rank, in all
  std::optional<double> goodput;  ///< 0 … 1
  bool struck_early = false;      ///< by a fault before the first step, from which on that counts
  TimeBudget budget;
  std::vector<LogTail> tails;
  std::string job_yaml;
  std::vector<std::string> notes;
};

RunReport BuildReport(RunRecords records);

/// "SUCCEEDED — 600 steps in 41.2 s, one fault survived, 3.2 s lost". Of a failure in short:
/// `reason` has the rest.
std::string Verdict(const RunReport& report);

/// The rank of the fault and the others that had died, in no order.
std::vector<std::uint64_t> DeadRanks(const FaultReport& fault);
constexpr std::size_t kMostRankRanges = 32;  // of them in words

/// " (and rank 1)" when more than one rank died, or nothing.
std::string AndOthers(const FaultReport& fault);

/// Whether it was ended by a signal to `muster run`: a Ctrl-C is no failure of the job's.
bool WasInterrupted(const RunReport& report);

/// " at step 342", or nothing for a program that reports no steps.
std::string AtStep(const FaultReport& fault);

}  // namespace muster::profile
