#pragma once
// The records of a run folder (docs/formats/run-folder.md), one struct a kind of line, and their
// readers. A reader takes one line or file and returns nothing when it is not what it should be:
// wrong type, missing key, number out of range. Unknown keys are left alone, for later versions.
// Text is cut at kMaxText and made valid UTF-8. Pure.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/report/lost.h"

namespace muster::profile {

inline constexpr std::size_t kMaxText = 4096;
inline constexpr std::size_t kMaxTail = 8192;
inline constexpr std::uint32_t kMaxRanks = 65'536;

inline constexpr std::array<std::string_view, 7> kPhaseNames{
    "data", "forward", "backward", "comm", "optimizer", "checkpoint", "eval"};
inline constexpr std::size_t kPhases = kPhaseNames.size();
inline constexpr std::size_t kEvaluation = kPhases - 1;

/// run.json
struct RunFacts {
  std::string id;
  std::string name;
  std::string version;
  std::string host;
  std::string cwd;  ///< the working folder of muster run; "" when it is not recorded
  std::int64_t pid = 0;
  std::string created_utc;
  std::int64_t created_ns = 0;  ///< CLOCK_MONOTONIC, as every *_ns here
  std::uint32_t ranks = 0;
  std::optional<std::uint64_t> seed;
};
/// DataLoss, or Precondition for another format, saying what is wrong: without run.json nothing can
/// be told.
Result<RunFacts> ReadRunFacts(std::string_view text);

/// result.json
struct RunResult {
  std::string state;
  std::int64_t exit_code = 0;
  std::string reason;
  std::int64_t ended_ns = 0;
  std::string ended_utc;
  std::optional<std::uint64_t> steps;  ///< empty: the program reports none
  std::optional<std::uint64_t> restarts;
  std::optional<LostSeconds> lost;
  std::optional<double> goodput;
};
/// DataLoss, or Precondition for another format, naming it.
Result<RunResult> ReadRunResult(std::string_view text);

/// A line of events.jsonl: the keys of every event that this reader knows, absent ones empty.
struct EventRecord {
  std::int64_t t_ns = 0;
  std::string event;
  std::optional<std::uint64_t> generation;
  std::optional<std::uint32_t> rank;
  std::optional<std::uint64_t> step;
  std::optional<std::uint64_t> resume_step;
  std::optional<std::int64_t> died_ns;
  std::optional<std::int64_t> pid;
  std::optional<std::int64_t> code;
  std::string signal;
  std::string cause;
  std::string how;
  std::string command;
  std::string stream;  ///< of `log_dropped`
  std::uint64_t bytes = 0;
  std::uint32_t kept = 0;  ///< of `ranks_quiesced`
  std::string what;        ///< of `hang`
  std::string rule;        ///< of `log_rule`, as is `why`
  std::string why;
  std::string name;   ///< of `signal`
  std::string state;  ///< of `run_ended`, as are `exit_code` and `reason`
  std::int64_t exit_code = 0;
  std::string node;    ///< of `node_joined`, `node_lost` and `shim_lost`
  std::string reason;  ///< of `node_lost`, `shim_lost`, `run_ended` and `log_dropped`
};
std::optional<EventRecord> ReadEvent(std::string_view line);

/// A line of steps/rank-R.jsonl.
struct StepRow {
  std::uint64_t step = 0;
  std::uint64_t generation = 0;
  std::int64_t begin_ns = 0;
  std::uint32_t total_us = 0;
  double loss = 0;  ///< NaN when the record says null
  std::array<std::uint32_t, kPhases> phase_us{};
  std::int64_t end_ns() const { return begin_ns + std::int64_t{total_us} * 1000; }
};
std::optional<StepRow> ReadStep(std::string_view line);

/// fault-G.json: why generation G ended, as muster run saw it.
struct FaultNote {
  std::uint64_t generation = 0;
  std::uint32_t rank = 0;
  std::vector<std::uint32_t> others;  ///< ranks that had died too when it was decided on
  std::string cause;                  ///< "killed by SIGKILL"
  std::string exception;              ///< the last line of its stderr
  std::string decision;               ///< what was done about it
  std::string out_tail;               ///< as written, the last kMaxTail bytes
  std::string err_tail;
};
std::optional<FaultNote> ReadFault(std::string_view text);

/// A line of eval.jsonl.
struct EvalRow {
  std::uint64_t step = 0;
  std::uint64_t generation = 0;
  std::optional<double> accuracy;
  std::optional<double> loss;
  std::uint64_t samples = 0;
};
std::optional<EvalRow> ReadEval(std::string_view line);

}  // namespace muster::profile
