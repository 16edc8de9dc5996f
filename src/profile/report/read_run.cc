#include "profile/report/read_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/absent.h"
#include "base/host_name.h"
#include "profile/report/text.h"
#include "profile/report/what_else.h"
#include "spec/job.h"

namespace muster::profile {
namespace {

constexpr Bytes kSmallFile = 1_MiB;
constexpr Bytes kFaultFile = 4_MiB;  // two tails of 64 KiB, escaped, and a line a rank
constexpr Bytes kTail{kMaxTail};
constexpr std::size_t kMostTails = 8;
constexpr std::size_t kMostFaultNotes = 200;

using Notes = std::vector<std::string>;

/// Reads the lines of one file into `out`; says what it had to leave out. An absent file is an
/// empty one.
template <typename Row>
void ReadLines(const RunFiles& files, const std::string& path, const ReadLimits& limits,
               std::size_t most, std::optional<Row> (*parse)(std::string_view),
               std::vector<Row>& out, Notes& notes) {
  std::uint64_t bad = 0;
  std::uint64_t surplus = 0;
  const auto read = files.ForEachLine(path, limits.lines_file, [&](std::string_view line) {
    if (out.size() >= most) {
      ++surplus;
    } else if (auto row = parse(line)) {
      out.push_back(std::move(*row));
    } else {
      ++bad;
    }
  });
  if (!read) {
    if (read.error().code() != Code::kNotFound) notes.push_back(read.error().message());
    return;
  }
  bad += read->too_long;
  if (read->torn) notes.push_back(path + " ends in the middle of a line, which was skipped");
  if (bad > 0) {
    notes.push_back(
        fmt::format("{}: {} that could not be read, skipped", path, Counted(bad, "line")));
  }
  if (surplus > 0 || read->cut) {
    notes.push_back(fmt::format("{} is longer than a report reads; the rest was left out", path));
  }
}

/// Their order is that of what they tell; a file that was merged or edited may have lost it.
/// Records of one time keep theirs.
template <typename Row>
void Order(std::vector<Row>& rows, std::int64_t Row::* time, const std::string& path,
           Notes& notes) {
  if (std::ranges::is_sorted(rows, {}, time)) return;
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  for (const Row& row : rows) order.emplace_back(row.*time, order.size());
  std::ranges::sort(order);
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const auto& [at, index] : order) sorted.push_back(std::move(rows[index]));
  rows = std::move(sorted);
  notes.push_back(path + " is not in the order of its times; it was sorted by them");
}

void ReadSteps(const RunFiles& files, const ReadLimits& limits, RunRecords& run) {
  std::size_t left = limits.steps;
  std::vector<std::uint32_t> silent;
  run.steps.resize(run.facts.ranks);
  for (std::uint32_t rank = 0; rank < run.facts.ranks; ++rank) {
    auto& rows = run.steps[rank];
    ReadLines<StepRow>(files, fmt::format("steps/rank-{}.jsonl", rank), limits, left, ReadStep,
                       rows, run.notes);
    Order(rows, &StepRow::begin_ns, fmt::format("steps/rank-{}.jsonl", rank), run.notes);
    left -= rows.size();
    if (rows.empty()) silent.push_back(rank);
  }
  if (silent.size() == run.facts.ranks) {
    run.notes.emplace_back(
        "no rank recorded a finished step: the program does not report its steps, or made none");
  } else if (!silent.empty()) {
    run.notes.push_back(
        fmt::format("{} of {} ranks recorded no finished step, the first is rank {}", silent.size(),
                    run.facts.ranks, silent.front()));
  }
}

/// Whether every fault can be among the events: without them, "no faults" would be a guess.
void CheckEvents(RunRecords& run) {
  if (run.events.empty()) {
    run.notes.emplace_back(
        "events.jsonl is missing or empty: which workers ran and what struck them is not known");
    return;
  }
  const bool ended = std::ranges::any_of(
      run.events, [](const EventRecord& event) { return event.event == "run_ended"; });
  if (run.result && !ended) {
    run.notes.emplace_back("events.jsonl ends before the run did: faults may be missing");
  }
}

/// The job as it ran, for the page; one that was cut tells less than it seems to.
void ReadJobFile(const RunFiles& files, RunRecords& run) {
  auto job = files.ReadWhole("job.yaml", kSmallFile);
  if (!job) {
    run.notes.push_back("job.yaml: " + job.error().message());
    return;
  }
  if (const auto parsed = spec::ParseJob(*job, "job.yaml"); !parsed) {
    run.notes.push_back("job.yaml is not whole, or not of this version: " +
                        CutText(parsed.error().message(), 200));
  }
  run.job_yaml = std::move(*job);
}

void ReadResult(const RunFiles& files, RunRecords& run) {
  const auto text = files.ReadWhole("result.json", kSmallFile);
  if (!text) {
    // A run that goes on has none yet.
    if (text.error().code() != Code::kNotFound) run.result_unread = text.error().message();
    return;
  }
  if (auto result = ReadRunResult(*text)) {
    run.result = *std::move(result);
  } else {
    run.result_unread = result.error().message();
  }
}

/// An end that was recorded is one, also when result.json found no room on the disk.
void TakeEndOfEvents(RunRecords& run) {
  if (run.result || run.lock_held) return;
  for (const EventRecord& event : run.events) {
    if (event.event != "run_ended") continue;
    if (event.state != "SUCCEEDED" && event.state != "FAILED") continue;
    run.result = RunResult{.state = event.state,
                           .exit_code = event.exit_code,
                           .reason = event.reason,
                           .ended_ns = event.t_ns};
    run.notes.push_back(
        fmt::format("{}; the end is told by events.jsonl",
                    run.result_unread.empty() ? "result.json is missing" : run.result_unread));
    return;
  }
  if (!run.result_unread.empty()) run.notes.push_back(run.result_unread);
}

/// The records of the faults that the events tell of. A run that broke off may lack the last one.
void ReadFaultNotes(const RunFiles& files, RunRecords& run) {
  std::set<std::uint64_t> seen;
  for (const EventRecord& event : run.events) {
    if (run.fault_notes.size() >= kMostFaultNotes) return;
    if (event.event != "fault" || !event.generation) continue;
    if (!seen.insert(*event.generation).second) continue;
    const std::string path = fmt::format("fault-{}.json", *event.generation);
    const auto text = files.ReadWhole(path, kFaultFile);
    if (!text) {
      if (text.error().code() != Code::kNotFound) run.notes.push_back(text.error().message());
      continue;
    }
    if (auto note = ReadFault(*text)) {
      run.fault_notes.push_back(*std::move(note));
    } else {
      run.notes.push_back(path + " is not a muster-fault/1 document");
    }
  }
}

/// What the record of a fault kept of a log that is gone.
std::string KeptTail(const RunRecords& run, const EventRecord& fault, std::string_view stream) {
  for (const FaultNote& note : run.fault_notes) {
    if (note.generation != *fault.generation || note.rank != *fault.rank) continue;
    return stream == "stderr" ? note.err_tail : note.out_tail;
  }
  return {};
}

void ReadTails(const RunFiles& files, RunRecords& run) {
  std::set<std::pair<std::uint64_t, std::uint32_t>> seen;
  // The last faults are the ones that a failed run ended with.
  for (auto event = run.events.rbegin(); event != run.events.rend(); ++event) {
    if (run.tails.size() >= kMostTails) return;
    if (event->event != "fault" || !event->generation || !event->rank) continue;
    if (!seen.emplace(*event->generation, *event->rank).second) continue;
    for (const char* stream : {"stderr", "stdout"}) {
      const auto text = files.ReadTail(
          fmt::format("logs/rank-{}/gen-{}.{}.log", *event->rank, *event->generation, stream),
          kTail);
      std::string tail = text ? *text : KeptTail(run, *event, stream);
      if (tail.empty()) continue;
      run.tails.push_back({*event->generation, *event->rank, stream, std::move(tail)});
    }
  }
}

}  // namespace

Result<RunFacts> ReadFacts(const RunFiles& files) {
  constexpr std::string_view kHint = "this is not the folder of a run; 'muster run' names its own";
  const auto text = files.ReadWhole("run.json", kSmallFile);
  if (!text && text.error().code() == Code::kNotFound) {
    return Error(Code::kNotFound, files.folder() + " is no run folder: it has no run.json",
                 WhatElse(files));
  }
  if (!text) return Error(text.error()).Within(files.folder()).Hint(kHint);
  auto facts = ReadRunFacts(*text);
  if (!facts) return std::move(facts.error()).Within(files.folder()).Hint(kHint);
  return facts;
}

Result<RunRecords> ReadRun(const RunFiles& files, const ReadLimits& limits, const Clock& clock) {
  RunRecords run{.folder = AbsolutePath(files.folder())};
  run.facts = MUSTER_TRY(ReadFacts(files));
  // The lock before the result: a run that ends in between is then seen as ended, not as lost.
  run.lock_held = files.LockHeld();
  // Another host counts from another start.
  if (run.facts.host == HostName()) run.read_ns = clock.Now().time_since_epoch().count();
  ReadLines<EventRecord>(files, "events.jsonl", limits, limits.events, ReadEvent, run.events,
                         run.notes);
  Order(run.events, &EventRecord::t_ns, "events.jsonl", run.notes);
  ReadSteps(files, limits, run);
  ReadLines<EvalRow>(files, "eval.jsonl", limits, limits.evals, ReadEval, run.evals, run.notes);
  ReadFaultNotes(files, run);
  ReadTails(files, run);
  ReadJobFile(files, run);
  ReadResult(files, run);
  TakeEndOfEvents(run);
  CheckEvents(run);
  return run;
}

}  // namespace muster::profile
