#include "profile/report/fault_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace muster::profile {
namespace {

/// What the events say about one generation, and where each rank's steps of it begin.
struct GenerationFacts {
  bool started = false;
  std::optional<std::int64_t> workers_ns;  ///< when the last of its workers was started
  std::optional<std::int64_t> paused_ns;
  std::optional<std::int64_t> stopped_ns;
  std::optional<std::int64_t> died_ns;             ///< of the fault that ended it
  std::map<std::uint32_t, std::size_t> first_row;  ///< by rank, into its rows
  std::map<std::uint32_t, std::string> exits;      ///< by rank
};
using Index = std::map<std::uint64_t, GenerationFacts>;

void IndexEvent(const EventRecord& event, Index& index) {
  if (!event.generation) return;
  GenerationFacts& facts = index[*event.generation];
  if (event.event == "generation_started") {
    facts.started = true;
  } else if (event.event == "worker_started") {
    facts.workers_ns = event.t_ns;
  } else if (event.event == "pause" && !facts.paused_ns) {
    facts.paused_ns = event.t_ns;
  } else if (event.event == "workers_stopped" && !facts.stopped_ns) {
    facts.stopped_ns = event.t_ns;
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
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i > 0 && rows[i].generation == rows[i - 1].generation) continue;
      index[rows[i].generation].first_row.emplace(rank, i);
    }
  }
  return index;
}

/// When the last rank began its first step of a generation; nothing while one has not. A program
/// that reports no steps at all counts as stepping from the start of its last worker.
std::optional<std::int64_t> AllStepping(const RunRecords& run, const GenerationFacts& facts) {
  const bool reports_steps = std::any_of(run.steps.begin(), run.steps.end(),
                                         [](const auto& rows) { return !rows.empty(); });
  if (!reports_steps) return facts.workers_ns;
  if (facts.first_row.size() < run.steps.size()) return std::nullopt;
  std::int64_t latest = 0;
  for (const auto& [rank, row] : facts.first_row) {
    latest = std::max(latest, run.steps[rank][row].begin_ns);
  }
  return latest;
}

/// When the slowest rank had finished `step` in a generation; nothing when one never did.
std::optional<std::int64_t> AllReached(const RunRecords& run, std::uint64_t generation,
                                       const GenerationFacts& facts, std::uint64_t step) {
  if (facts.first_row.empty()) return std::nullopt;
  std::int64_t latest = 0;
  for (const auto& [rank, first] : facts.first_row) {
    const auto& rows = run.steps[rank];
    std::size_t i = first;
    while (i < rows.size() && rows[i].generation == generation && rows[i].step < step) ++i;
    if (i == rows.size() || rows[i].generation != generation) return std::nullopt;
    // A generation that resumes behind the step has nothing to replay.
    latest = std::max(latest, rows[i].step > step ? rows[i].begin_ns : rows[i].end_ns());
  }
  return latest;
}

/// Takes the times of a fault in order; one that is missing ends it, none runs backwards.
class Stages {
 public:
  Stages(double created_s, double died) : created_s_(created_s), before_(died) {}

  bool Take(std::optional<std::int64_t> time_ns, std::optional<double>& out, double& lost) {
    if (!time_ns) return false;
    out = std::max(static_cast<double>(*time_ns) / 1e9 - created_s_, before_);
    lost = *out - before_;
    before_ = *out;
    return true;
  }

 private:
  double created_s_;
  double before_;
};

void Measure(const RunRecords& run, const Index& index, FaultReport& fault) {
  Stages stages(static_cast<double>(run.facts.created_ns) / 1e9, fault.died);
  const auto own = index.find(fault.generation);
  LostSeconds& lost = fault.lost;
  if (!stages.Take(own->second.paused_ns, fault.paused, lost.detect)) return;
  if (!stages.Take(own->second.stopped_ns, fault.stopped, lost.stop)) return;
  auto next = std::next(own);
  while (next != index.end() && !next->second.started) ++next;
  if (next == index.end()) return;
  const GenerationFacts& facts = next->second;
  // A later fault ends what was still open of this one: from its death on, time is lost to it.
  const auto before_next = [&facts](std::optional<std::int64_t> time_ns) {
    return time_ns && facts.died_ns && *time_ns > *facts.died_ns ? std::nullopt : time_ns;
  };
  if (!stages.Take(before_next(AllStepping(run, facts)), fault.stepping, lost.start)) {
    stages.Take(facts.died_ns, fault.cut, lost.start);
    return;
  }
  if (facts.first_row.empty()) return;  // who reports no steps replays none
  if (!stages.Take(before_next(AllReached(run, next->first, facts, fault.step)), fault.caught_up,
                   lost.replay)) {
    stages.Take(facts.died_ns, fault.cut, lost.replay);
  }
}

}  // namespace

std::vector<FaultReport> MeasureFaults(const RunRecords& run) {
  const Index index = MakeIndex(run);
  std::vector<FaultReport> faults;
  std::set<std::uint64_t> generations;
  for (const EventRecord& event : run.events) {
    if (event.event != "fault" || !event.generation || faults.size() == kMostFaults) continue;
    if (!generations.insert(*event.generation).second) continue;
    const std::int64_t died_ns = event.died_ns.value_or(event.t_ns);
    FaultReport fault{.generation = *event.generation,
                      .rank = event.rank.value_or(0),
                      .cause = event.cause,
                      .step = event.step.value_or(0),
                      .died = static_cast<double>(died_ns - run.facts.created_ns) / 1e9};
    const auto& exits = index.at(fault.generation).exits;
    if (const auto exit = exits.find(fault.rank); exit != exits.end()) fault.exit = exit->second;
    Measure(run, index, fault);
    faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace muster::profile
