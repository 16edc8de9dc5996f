#include "profile/report/fault_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace muster::profile {
namespace {

/// Where a rank's steps of a generation begin.
struct FirstStep {
  std::size_t row = 0;         ///< into its rows
  std::uint64_t furthest = 0;  ///< the furthest step that it had finished before
};

/// What the events say about one generation, and where each rank's steps of it begin.
struct GenerationFacts {
  std::optional<std::int64_t> began_ns;
  std::optional<std::int64_t> workers_ns;  ///< when the last of its workers was started
  std::uint32_t workers = 0;               ///< that were
  std::uint32_t kept = 0;                  ///< ranks that went on in the next one
  std::optional<std::int64_t> paused_ns;
  std::optional<std::int64_t> stopped_ns;
  std::optional<std::int64_t> died_ns;         ///< of the fault that ended it
  std::map<std::uint32_t, FirstStep> first;    ///< by rank
  std::map<std::uint32_t, std::string> exits;  ///< by rank
};
using Index = std::map<std::uint64_t, GenerationFacts>;

void IndexEvent(const EventRecord& event, Index& index) {
  if (!event.generation) return;
  GenerationFacts& facts = index[*event.generation];
  if (event.event == "generation_started") {
    facts.began_ns = event.t_ns;
  } else if (event.event == "worker_started") {
    facts.workers_ns = event.t_ns;
    ++facts.workers;
  } else if (event.event == "pause" && !facts.paused_ns) {
    facts.paused_ns = event.t_ns;
  } else if ((event.event == "workers_stopped" || event.event == "ranks_quiesced") &&
             !facts.stopped_ns) {
    facts.stopped_ns = event.t_ns;
    facts.kept = event.kept;
  } else if (event.event == "fault" && !facts.died_ns) {
    facts.died_ns = event.died_ns.value_or(event.t_ns);
  } else if (event.event == "worker_exited" && event.rank) {
    facts.exits[*event.rank] = !event.signal.empty() ? event.signal
                               : event.code          ? fmt::format("code {}", *event.code)
                                                     : std::string();
  }
}

Index MakeIndex(const RunRecords& run) {
  Index index;
  for (const EventRecord& event : run.events) IndexEvent(event, index);
  for (std::uint32_t rank = 0; rank < run.steps.size(); ++rank) {
    const auto& rows = run.steps[rank];
    std::uint64_t furthest = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i == 0 || rows[i].generation != rows[i - 1].generation) {
        index[rows[i].generation].first.emplace(rank, FirstStep{i, furthest});
      }
      furthest = std::max(furthest, rows[i].step);
    }
  }
  return index;
}

/// By its records, or because a fault struck it before the first one.
bool ReportsSteps(const RunRecords& run) {
  const auto before_any = [](const EventRecord& event) {
    return event.event == "fault" && event.step == 0;
  };
  return std::ranges::any_of(run.steps, [](const auto& rows) { return !rows.empty(); }) ||
         std::ranges::any_of(run.events, before_any);
}

/// When the last rank began its first step of a generation; nothing while one has not.
std::optional<std::int64_t> AllStepping(const RunRecords& run, const GenerationFacts& facts) {
  if (facts.first.size() < run.steps.size()) return std::nullopt;
  std::int64_t latest = 0;
  for (const auto& [rank, first] : facts.first) {
    latest = std::max(latest, run.steps[rank][first.row].begin_ns);
  }
  return latest;
}

/// When the slowest rank had done again in a generation what it had done before; nothing when one
/// never did.
std::optional<std::int64_t> AllDoneAgain(const RunRecords& run, std::uint64_t generation,
                                         const GenerationFacts& facts, const FaultReport& fault) {
  std::int64_t latest = 0;
  for (const auto& [rank, first] : facts.first) {
    const auto& rows = run.steps[rank];
    const std::uint64_t target =
        rank == fault.rank ? std::max(first.furthest, fault.step.value_or(0)) : first.furthest;
    std::size_t i = first.row;
    while (i < rows.size() && rows[i].generation == generation && rows[i].step < target) ++i;
    if (i == rows.size() || rows[i].generation != generation) return std::nullopt;
    // A generation that resumes behind it has nothing to replay.
    latest = std::max(latest, rows[i].step > target ? rows[i].begin_ns : rows[i].end_ns());
  }
  return latest;
}

/// Takes the times of a fault in order; one that is missing ends it, none runs backwards.
class Stages {
 public:
  Stages(double created_s, double died) : created_s_(created_s), before_(died) {}

  double Since(std::int64_t time_ns) const {
    return static_cast<double>(time_ns) / 1e9 - created_s_;
  }
  bool Take(std::optional<std::int64_t> time_ns, std::optional<double>& out, double& lost) {
    if (!time_ns) return false;
    out = std::max(Since(*time_ns), before_);
    lost = *out - before_;
    before_ = *out;
    return true;
  }

 private:
  double created_s_;
  double before_;
};

/// From the generation after the fault on, in which `kept` ranks still run.
void MeasureComeback(const RunRecords& run, std::uint64_t generation, std::uint32_t kept,
                     const GenerationFacts& facts, Stages& stages, FaultReport& fault) {
  LostSeconds& lost = fault.lost;
  std::optional<std::int64_t> over = facts.died_ns;
  if (!over && run.result && run.result->ended_ns > 0) over = run.result->ended_ns;
  // A later fault, or the end, ends what was still open of this one.
  const auto in_time = [over](std::optional<std::int64_t> time_ns) {
    return time_ns && over && *time_ns > *over ? std::nullopt : time_ns;
  };
  if (facts.workers + kept == run.facts.ranks) {
    double unused = 0;
    Stages(stages).Take(in_time(facts.workers_ns), fault.restarted, unused);
  }
  const bool succeeded = run.result && run.result->state == "SUCCEEDED";
  fault.no_step_left = fault.steps_known && succeeded && !facts.died_ns && facts.first.empty() &&
                       fault.restarted.has_value();
  const auto back = fault.no_step_left            ? facts.workers_ns
                    : fault.steps_known           ? in_time(AllStepping(run, facts))
                    : fault.restarted.has_value() ? facts.workers_ns
                                                  : std::nullopt;
  if (!stages.Take(back, fault.stepping, lost.start)) {
    stages.Take(over, fault.cut, lost.start);
    return;
  }
  if (!fault.steps_known || fault.no_step_left) return;
  if (!stages.Take(in_time(AllDoneAgain(run, generation, facts, fault)), fault.caught_up,
                   lost.replay)) {
    stages.Take(over, fault.cut, lost.replay);
  }
}

void Measure(const RunRecords& run, const Index& index, FaultReport& fault) {
  Stages stages(static_cast<double>(run.facts.created_ns) / 1e9, fault.died);
  const auto own = index.find(fault.generation);
  if (!fault.steps_known) {
    const auto began = own->second.began_ns.value_or(run.facts.created_ns);
    fault.lost.unknown = std::max(0.0, fault.died - stages.Since(began));
  }
  if (!stages.Take(own->second.paused_ns, fault.paused, fault.lost.detect)) return;
  if (!stages.Take(own->second.stopped_ns, fault.stopped, fault.lost.stop)) return;
  auto next = std::next(own);
  while (next != index.end() && !next->second.began_ns) ++next;
  if (next != index.end())
    MeasureComeback(run, next->first, own->second.kept, next->second, stages, fault);
}

}  // namespace

std::vector<FaultReport> MeasureFaults(const RunRecords& run) {
  const Index index = MakeIndex(run);
  const bool steps_known = ReportsSteps(run);
  std::vector<FaultReport> faults;
  std::set<std::uint64_t> generations;
  for (const EventRecord& event : run.events) {
    if (event.event != "fault" || !event.generation || faults.size() == kMostFaults) continue;
    if (!generations.insert(*event.generation).second) continue;
    const std::int64_t died_ns = event.died_ns.value_or(event.t_ns);
    FaultReport fault{.generation = *event.generation,
                      .rank = event.rank.value_or(0),
                      .cause = event.cause,
                      .step = steps_known ? event.step : std::nullopt,
                      .died = static_cast<double>(died_ns - run.facts.created_ns) / 1e9,
                      .steps_known = steps_known};
    const auto& exits = index.at(fault.generation).exits;
    if (const auto exit = exits.find(fault.rank); exit != exits.end()) fault.exit = exit->second;
    Measure(run, index, fault);
    faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace muster::profile
