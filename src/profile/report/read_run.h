#pragma once
// Everything that a run folder tells, read once and bounded, before any of it is interpreted. What
// is missing, torn or odd becomes a note for people, not an error: a crashed run must still be
// readable. Only a folder without a usable run.json is refused.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "profile/report/records.h"
#include "profile/report/run_files.h"

namespace muster::profile {

/// The end of one log of a worker that failed.
struct LogTail {
  std::uint64_t generation = 0;
  std::uint32_t rank = 0;
  std::string stream;  ///< "stderr" or "stdout"
  std::string text;    ///< as written, the last 8 KiB
};

struct RunRecords {
  std::string folder;  ///< absolute
  RunFacts facts;
  bool lock_held = false;
  std::optional<std::int64_t> read_ns;  ///< the time of reading, where it is on the run's own clock
  std::optional<RunResult> result;      ///< without result.json what `run_ended` tells
  std::string result_unread;            ///< why result.json, which is there, tells nothing
  std::vector<EventRecord> events;      ///< in file order
  std::vector<std::vector<StepRow>> steps;  ///< by rank, in file order
  std::vector<EvalRow> evals;
  std::vector<FaultNote> fault_notes;  ///< at most 200
  std::vector<LogTail> tails;          ///< of the ranks that faulted, at most 8
  std::string job_yaml;
  std::vector<std::string> notes;
};

struct ReadLimits {
  Bytes lines_file = 1_GiB;
  std::size_t events = 1'000'000;
  std::size_t steps = 4'000'000;  ///< of all ranks together
  std::size_t evals = 100'000;
};

/// run.json, on which every other record hangs; its errors say which folder they are of.
Result<RunFacts> ReadFacts(const RunFiles& files);

/// The clock tells how long a run that goes on has gone on.
Result<RunRecords> ReadRun(const RunFiles& files, const ReadLimits& limits = {},
                           const Clock& clock = SystemClock());

}  // namespace muster::profile
