#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "profile/report/fault_times.h"
#include "profile/report/go_on.h"
#include "profile/report/run_report.h"
#include "profile/report/step_series.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

double Since(const RunRecords& run, std::int64_t time_ns) {
  return static_cast<double>(time_ns - run.facts.created_ns) / 1e9;
}

/// What muster run noted when it struck.
void AddFaultNotes(const std::vector<FaultNote>& notes, std::vector<FaultReport>& faults) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, const FaultNote*> found;
  for (const FaultNote& note : notes) found.emplace(std::pair(note.generation, note.rank), &note);
  for (FaultReport& fault : faults) {
    const auto note = found.find({fault.generation, fault.rank});
    if (note == found.end()) continue;
    fault.others = note->second->others;
    fault.what = note->second->cause;
    fault.exception = note->second->exception;
    fault.decision = note->second->decision;
  }
}

RunState StateOf(const RunRecords& run) {
  if (run.result)
    return run.result->state == "SUCCEEDED" ? RunState::kSucceeded : RunState::kFailed;
  return run.lock_held ? RunState::kRunning : RunState::kLost;
}

/// The end of the run, now when it goes on, or of what is known of it.
double WallOf(const RunRecords& run) {
  if (run.result && run.result->ended_ns > run.facts.created_ns) {
    return Since(run, run.result->ended_ns);
  }
  std::int64_t last = run.facts.created_ns;
  for (const EventRecord& event : run.events) last = std::max(last, event.t_ns);
  for (const auto& rows : run.steps) {
    if (!rows.empty()) last = std::max(last, rows.back().end_ns());
  }
  if (!run.result && run.lock_held) last = std::max(last, run.read_ns.value_or(last));
  return Since(run, last);
}

void AddWorkerEvent(const RunRecords& run, const EventRecord& event,
                    std::map<std::pair<std::uint64_t, std::uint32_t>, std::size_t>& places,
                    RunReport& report) {
  if (!event.generation || !event.rank || *event.rank >= run.facts.ranks) return;
  const auto key = std::pair(*event.generation, *event.rank);
  if (event.event == "worker_started") {
    places.insert_or_assign(key, report.workers.size());
    report.workers.push_back({.rank = *event.rank,
                              .generation = *event.generation,
                              .begin = Since(run, event.t_ns),
                              .pid = event.pid.value_or(0),
                              .how = event.how});
    return;
  }
  const auto place = places.find(key);
  if (place == places.end()) return;
  WorkerSpan& worker = report.workers[place->second];
  worker.end = Since(run, event.t_ns);
  worker.cause = event.cause;
  worker.exit = event.signal;
  if (event.code) worker.exit = fmt::format("code {}", *event.code);
}

/// "" is of a version that did not tell it.
std::string LossInWords(std::uint64_t rank, const std::string& stream, const std::string& reason,
                        std::uint64_t count) {
  const std::string bytes =
      FormatBytes({static_cast<std::int64_t>(std::min<std::uint64_t>(count, INT64_MAX))});
  if (reason == "too fast") {
    return fmt::format("rank {} wrote to its {} faster than it could be kept: {} dropped", rank,
                       stream, bytes);
  }
  const std::string what = fmt::format("{} of what rank {} wrote to its {}", bytes, rank, stream);
  if (reason == "no room") return "the disk had no room for " + what;
  return reason.empty() ? what + " could not be kept" : "the disk did not take " + what;
}

/// What of the workers' output is not in their logs: a note for each stream and reason.
void AddLogLosses(const RunRecords& run, RunReport& report) {
  std::map<std::tuple<std::uint64_t, std::string, std::string>, std::uint64_t> bytes;
  for (const EventRecord& event : run.events) {
    if (event.event != "log_dropped") continue;
    std::uint64_t& sum = bytes[{event.rank.value_or(0), event.stream, event.reason}];
    sum += std::min(event.bytes, UINT64_MAX - sum);
  }
  for (const auto& [key, sum] : bytes) {
    const auto& [rank, stream, reason] = key;
    report.notes.push_back(LossInWords(rank, stream, reason, sum));
  }
}

void AddEvents(const RunRecords& run, RunReport& report) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::size_t> places;
  std::map<std::uint64_t, GenerationSpan> generations;
  for (const EventRecord& event : run.events) {
    const double at = Since(run, event.t_ns);
    if (event.event == "run_started") {
      report.command = event.command;
    } else if (event.event == "generation_started" && event.generation) {
      generations[*event.generation] = {
          .generation = *event.generation, .begin = at, .resume_step = event.resume_step};
    } else if (event.event == "ranks_ready" && event.generation) {
      const auto found = generations.find(*event.generation);
      if (found != generations.end()) found->second.ready = at;
    } else if (event.event == "checkpoint" && event.step) {
      report.checkpoints.push_back(
          {.at = at, .generation = event.generation.value_or(0), .step = *event.step});
    } else if (event.event == "worker_started" || event.event == "worker_exited") {
      AddWorkerEvent(run, event, places, report);
    }
  }
  for (auto& [number, generation] : generations) report.generations.push_back(generation);
}

/// The seconds between two times that were lost to faults.
double LostWithin(double begin, double end, const std::vector<FaultReport>& faults) {
  double seconds = 0;
  for (const FaultReport& fault : faults) {
    const double over = fault.died + fault.lost.total();
    seconds += std::max(0.0, std::min(end, over) - std::max(begin, fault.died));
  }
  return seconds;
}

/// Rank 0's time in first runs of steps over the time from its first step's begin to its last one's
/// end.
std::optional<double> GoodputOf(const std::vector<StepRow>& rows) {
  if (rows.empty()) return std::nullopt;
  std::int64_t first = rows.front().begin_ns;
  std::int64_t last = rows.front().end_ns();
  double useful = 0;
  for (const StepRow& row : rows) {
    first = std::min(first, row.begin_ns);
    last = std::max(last, row.end_ns());
  }
  for (const StepRow& row : FirstRuns(rows)) useful += row.total_us / 1e6;
  const double wall = static_cast<double>(last - first) / 1e9;
  if (wall <= 0) return std::nullopt;
  return std::min(1.0, useful / wall);
}

/// Whatever is lost to a fault is nothing else: a replayed step, a start-up that was for nothing.
TimeBudget BudgetOf(const RunRecords& run, const std::vector<StepRow>& rows,
                    const RunReport& report) {
  TimeBudget budget;
  double left = report.wall;
  const auto spend = [&left](double seconds) {
    const double spent = std::clamp(seconds, 0.0, left);
    left -= spent;
    return spent;
  };
  const auto kept = [&report](double begin, double end) {
    return std::max(0.0, end - begin) - LostWithin(begin, end, report.faults);
  };
  double training = 0;
  for (const StepRow& row : FirstRuns(rows)) {
    training += kept(Since(run, row.begin_ns), Since(run, row.end_ns()));
  }
  budget.lost = spend(LostWithin(0, report.wall, report.faults));
  budget.startup = spend(kept(0, Since(run, rows.front().begin_ns)));
  budget.ending = spend(kept(Since(run, rows.back().end_ns()), report.wall));
  budget.training = spend(training);
  budget.other = left;
  return budget;
}

void NoteSteps(std::uint64_t step, RunReport& report) {
  report.steps = std::max(report.steps.value_or(0), step);
}

void AddSteps(const RunRecords& run, RunReport& report) {
  std::vector<std::vector<StepRow>> counted;
  for (const auto& rows : run.steps) {
    counted.push_back(LastRuns(rows));
    if (!counted.back().empty()) NoteSteps(counted.back().back().step, report);
  }
  report.step_times = MeasureSteps(counted);
  std::vector<std::vector<StepRow>> trained;
  for (const auto& rows : counted) trained.push_back(WithoutEvaluation(rows));
  report.train_times = MeasureSteps(trained);
  const auto leader =
      static_cast<std::size_t>(std::find_if(counted.begin(), counted.end(),
                                            [](const auto& steps) { return !steps.empty(); }) -
                               counted.begin());
  if (leader == counted.size()) return;
  report.losses = LossPoints(counted[leader]);
  for (const StepRow& row : counted[leader]) {
    report.evaluating += row.phase_us[kEvaluation] / 1e6;
    if (!std::isfinite(row.loss)) ++report.losses_not_finite;
  }
  report.replays = FindReplays(run.steps[leader]);
  report.goodput = GoodputOf(run.steps[leader]);
  report.struck_early = std::ranges::any_of(report.faults, [&](const FaultReport& fault) {
    return fault.died < Since(run, run.steps[leader].front().begin_ns);
  });
  report.budget = BudgetOf(run, run.steps[leader], report);
}

/// What `muster run` concluded itself; where its sums and ours differ, both are told.
void AddResult(const RunResult& result, RunReport& report) {
  report.exit_code = result.exit_code;
  report.reason = result.reason;
  report.ended_utc = result.ended_utc;
  if (result.steps) NoteSteps(*result.steps, report);
  if (result.restarts) report.restarts = *result.restarts;
  if (!report.goodput) report.goodput = result.goodput;
  if (result.lost && std::abs(result.lost->at_most() - report.lost.at_most()) >
                         0.05 + 0.1 * report.lost.at_most()) {
    report.notes.push_back(fmt::format("result.json has {} lost to faults, the records say {}",
                                       LostInWords(*result.lost), LostInWords(report.lost)));
  }
}

/// Of a run that broke off, and of one that failed but left a checkpoint.
std::string GoOn(const RunRecords& run, const RunReport& report) {
  const bool kept = report.state == RunState::kFailed && !report.checkpoints.empty();
  const bool broke_off = report.state == RunState::kLost && report.result_unread.empty();
  if (run.folder.empty() || (!kept && !broke_off)) return {};
  return CommandToGoOn(run.folder, run.job_yaml, run.facts.cwd);
}

/// A restart has a fault. One without a record was not measured, and must not be passed over.
void AddUnknownFaults(const RunRecords& run, RunReport& report) {
  report.faults_known = !run.events.empty();
  if (report.faults.size() >= kMostFaults || report.restarts <= report.faults.size()) return;
  report.faults_known = false;
  report.notes.push_back(fmt::format(
      "the run was restarted {}, events.jsonl tells of {}: what else struck is not known, and the "
      "time lost to it is not counted",
      Counted(report.restarts, "time"), Counted(report.faults.size(), "fault")));
}

/// What the kernel said against the host; events.jsonl has each line of it.
void AddTroubles(const RunRecords& run, RunReport& report) {
  std::size_t count = 0;
  const EventRecord* last = nullptr;
  for (const EventRecord& event : run.events) {
    if (event.event != "node_unwell") continue;
    ++count;
    last = &event;
  }
  if (last == nullptr) return;
  report.notes.push_back(fmt::format("the kernel spoke of trouble {}: {}{}",
                                     count == 1 ? "once" : Counted(count, "time"),
                                     count == 1 ? "" : "last of all ", last->what));
}

/// Each step once, as it was evaluated last: files of old trainers have a line more
/// of one that a restart evaluated again.
std::vector<EvalRow> LastEvals(const std::vector<EvalRow>& evals) {
  std::map<std::uint64_t, const EvalRow*> last;
  for (const EvalRow& eval : evals) last[eval.step] = &eval;
  std::vector<EvalRow> rows;
  rows.reserve(last.size());
  for (const auto& [step, eval] : last) rows.push_back(*eval);
  return rows;
}

}  // namespace

std::string_view NameOf(RunState state) {
  switch (state) {
    case RunState::kSucceeded:
      return "SUCCEEDED";
    case RunState::kFailed:
      return "FAILED";
    case RunState::kRunning:
      return "RUNNING";
    case RunState::kLost:
      return "UNFINISHED";
  }
  return "UNFINISHED";
}

RunReport BuildReport(RunRecords records) {
  RunReport report{.facts = records.facts, .state = StateOf(records), .wall = WallOf(records)};
  report.result_unread = records.result_unread;
  report.notes = std::move(records.notes);
  AddEvents(records, report);
  report.faults = MeasureFaults(records);
  AddFaultNotes(records.fault_notes, report.faults);
  if (report.faults.size() == kMostFaults) {
    report.notes.push_back(fmt::format(
        "only the first {} faults are listed and counted in the time lost", kMostFaults));
  }
  for (const FaultReport& fault : report.faults) report.lost.Add(fault.lost);
  report.restarts = report.generations.empty() ? 0 : report.generations.size() - 1;
  AddSteps(records, report);
  if (records.result) AddResult(*records.result, report);
  AddUnknownFaults(records, report);
  AddLogLosses(records, report);
  AddTroubles(records, report);
  report.go_on = GoOn(records, report);
  report.evals = LastEvals(records.evals);
  report.tails = std::move(records.tails);
  report.job_yaml = std::move(records.job_yaml);
  return report;
}

}  // namespace muster::profile
