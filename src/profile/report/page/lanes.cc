#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "profile/report/page/plot.h"
#include "profile/report/page/sections.h"
#include "profile/report/text.h"

namespace muster::profile {
namespace {

constexpr std::size_t kMostLanes = 64;
constexpr std::size_t kMostCloseUps = 3;  // of more faults than that, only the longest recovery's
constexpr std::size_t kMostCloseUpLanes = 8;

/// How much of a list is drawn: a page stays small whatever the run.
struct Limits {
  std::size_t spans = 0;
  std::size_t checkpoints = 0;
  std::size_t faults = 0;
  std::size_t marks = 0;  // of deaths
};
constexpr double kLeastStage = 0.006;  // of a close-up's width, that a stage is drawn with
constexpr double kHalfLane = 0.32;     // half a box's height, of a lane's
constexpr Limits kWhole{.spans = 500, .checkpoints = 200, .faults = 100, .marks = 500};
constexpr Limits kCloseUp{.spans = 50, .checkpoints = 50, .faults = 10, .marks = 80};

/// "SIGKILL", "code 1": short, whatever a file says.
std::string Short(std::string_view exit) { return CutText(exit, 24); }

/// One process that died of its own; those that were stopped because of it did not.
struct Death {
  std::uint32_t rank = 0;
  double at = 0;
  std::string told;
};

/// When another rank of a fault died: its process ended then, or is not known to have.
Death OtherDeath(const RunReport& report, const FaultReport& fault, std::uint32_t rank) {
  Death death{.rank = rank, .at = fault.died, .told = "not known"};
  for (const WorkerSpan& worker : report.workers) {
    const double end = worker.end.value_or(report.wall);
    if (worker.rank != rank || worker.begin > fault.died || end < fault.died) continue;
    death.at = std::min(end, fault.paused.value_or(end));
    death.told = Short(worker.exit);
  }
  death.told = fmt::format("rank {} died too ({}), {} into the run", rank, death.told,
                           FormatSeconds(death.at));
  return death;
}

Death FirstDeath(const FaultReport& fault) {
  return {fault.rank, fault.died,
          fmt::format("rank {} died ({}){}, {} into the run", fault.rank,
                      Short(fault.exit.empty() ? fault.cause : fault.exit), AtStep(fault),
                      FormatSeconds(fault.died))};
}

/// The ranks that get a lane: those that died first, then from 0 on.
std::vector<std::uint32_t> ChooseRanks(const RunReport& report) {
  std::set<std::uint32_t> chosen;
  for (const FaultReport& fault : report.faults) {
    for (const std::uint64_t rank : DeadRanks(fault)) {
      if (rank < report.facts.ranks && chosen.size() < kMostLanes)
        chosen.insert(static_cast<std::uint32_t>(rank));
    }
  }
  for (std::uint32_t rank = 0; rank < report.facts.ranks && chosen.size() < kMostLanes; ++rank) {
    chosen.insert(rank);
  }
  return {chosen.begin(), chosen.end()};
}

/// The part of the run that a plot of lanes shows, in seconds.
struct Window {
  double from = 0;
  double to = 0;
};

/// Lanes from top to bottom in a plot that is one high for each, and one more at the bottom for
/// the stages of the fault that a close-up is about.
class Lanes {
 public:
  Lanes(const RunReport& report, std::vector<std::uint32_t> ranks, Window window,
        const Limits& limits, const FaultReport* close_up = nullptr)
      : report_(report),
        ranks_(std::move(ranks)),
        window_(window),
        limits_(limits),
        close_up_(close_up),
        plot_(Scale(window.from, window.to), Scale(0, static_cast<double>(Rows())),
              Options(report)) {
    for (const FaultReport& fault : report.faults) {
      if (!Inside(fault.died, fault.stepping.value_or(fault.died))) continue;
      if (faults_.size() == limits_.faults) break;
      faults_.push_back(&fault);
      AddDeaths(fault);
    }
  }

  /// Lines lie behind the lanes, so that no line goes through a word.
  std::string Html() {
    for (const std::uint32_t rank : ranks_)
      plot_.AddRow(Middle(rank), fmt::format("rank {}", rank));
    DrawCheckpoints();
    DrawFaults();
    DrawWorkers();
    if (close_up_ != nullptr) DrawStages(*close_up_);
    return plot_.Html();
  }

 private:
  PlotOptions Options(const RunReport& report) const {
    const std::size_t lane = ranks_.size() <= 8 ? 44 : ranks_.size() <= 24 ? 26 : 16;
    return {.label = fmt::format("{} from {} to {}, {}, {}", Counted(ranks_.size(), "rank"),
                                 FormatSeconds(window_.from), FormatSeconds(window_.to),
                                 Counted(report.generations.size(), "generation"),
                                 Counted(report.faults.size(), "fault")),
            .x_title = "seconds since the run began",
            .height_px = static_cast<int>(std::max<std::size_t>(60, lane * Rows())),
            .y_ticks = 0};
  }

  std::size_t Rows() const { return ranks_.size() + (close_up_ != nullptr ? 1 : 0); }

  bool Inside(double from, double to) const { return to >= window_.from && from <= window_.to; }
  bool Shown(std::uint32_t rank) const {
    return std::binary_search(ranks_.begin(), ranks_.end(), rank);
  }
  double Middle(std::uint32_t rank) const {
    const auto place = std::lower_bound(ranks_.begin(), ranks_.end(), rank) - ranks_.begin();
    return static_cast<double>(Rows()) - static_cast<double>(place) - 0.5;
  }

  void DrawStages(const FaultReport& fault) {
    plot_.AddRow(0.5, "recovery");
    const auto stage = [&](double from, const std::optional<double>& to, std::string_view css,
                           std::string_view name) {
      if (!to) return from;
      // A stage that is too short to see is widened to the left: what follows covers the rest.
      const double least = kLeastStage * (window_.to - window_.from);
      plot_.Box(std::min(from, *to - least), *to, 0.5 - kHalfLane, 0.5 + kHalfLane, css,
                fmt::format("{}: {}", name, FormatSeconds(*to - from)));
      return *to;
    };
    double at = stage(fault.died, fault.paused, "l-detect", "detect");
    at = stage(at, fault.stopped, "l-stop", "stop");
    stage(at, fault.stepping, "l-start", "start");
  }

  void AddDeaths(const FaultReport& fault) {
    if (Shown(fault.rank)) deaths_.push_back(FirstDeath(fault));
    for (const std::uint32_t rank : fault.others) {
      if (deaths_.size() >= limits_.marks) return;
      if (Shown(rank)) deaths_.push_back(OtherDeath(report_, fault, rank));
    }
  }

  /// The first mark of a death on a lane between two times, if any.
  std::optional<double> MarkBetween(std::uint32_t rank, double from, double to) const {
    for (const Death& death : deaths_) {
      if (death.rank == rank && death.at >= from && death.at <= to) return death.at;
    }
    return std::nullopt;
  }

  void DrawCheckpoints() {
    const auto& marks = report_.checkpoints;
    // Of very many ticks every n-th is drawn.
    const std::size_t stride = marks.size() / limits_.checkpoints + 1;
    for (std::size_t i = 0; i < marks.size(); i += stride) {
      if (!Inside(marks[i].at, marks[i].at)) continue;
      plot_.VerticalLine(marks[i].at, "checkpoint",
                         fmt::format("checkpoint of step {}, {} into the run",
                                     FormatCount(marks[i].step), FormatSeconds(marks[i].at)));
    }
  }

  void DrawWorkers() {
    std::size_t drawn = 0;
    for (const WorkerSpan& worker : report_.workers) {
      const double reaped = worker.end.value_or(report_.wall);
      if (!Shown(worker.rank) || !Inside(worker.begin, reaped) || ++drawn > limits_.spans) continue;
      // A death is seen some time later; the bar ends where its mark stands.
      const double end = MarkBetween(worker.rank, worker.begin + 1e-9, reaped).value_or(reaped);
      const double y = Middle(worker.rank);
      const std::string name = fmt::format("generation {}", worker.generation);
      plot_.Box(
          worker.begin, end, y - kHalfLane, y + kHalfLane,
          worker.generation % 2 == 1 ? "gen odd" : "gen even",
          fmt::format("rank {}, {}: {} to {}, {}", worker.rank, name, FormatSeconds(worker.begin),
                      FormatSeconds(end),
                      worker.exit.empty() ? "still running" : "ended with " + Short(worker.exit)));
      if (ranks_.size() <= 8) WriteOn(worker, end, name);
    }
  }

  /// The generation as text on its box, where no mark of a death covers it.
  void WriteOn(const WorkerSpan& worker, double end, const std::string& name) {
    const double whole = std::max(window_.to - window_.from, 1e-9);
    const double begin = std::max(worker.begin, window_.from);
    const bool after = MarkBetween(worker.rank, begin - 0.03 * whole, begin).has_value();
    const auto mark = MarkBetween(worker.rank, begin + 1e-9, end);
    const double until = std::min(mark.value_or(end), window_.to);
    const double part = (until - begin) / whole;
    if (part <= 0.02) return;
    plot_.Inside(begin, until, Middle(worker.rank), {name, fmt::format("g{}", worker.generation)},
                 fmt::format("onbar{}{}", after ? " aftermark" : "", mark ? " tomark" : ""));
  }

  void DrawFaults() {
    for (const FaultReport* fault : faults_) {
      plot_.VerticalLine(fault->died, "fault", FirstDeath(*fault).told + AndOthers(*fault));
      if (!fault->stepping) continue;
      plot_.VerticalLine(*fault->stepping, "recovery",
                         fmt::format("every rank runs again, {} later",
                                     FormatSeconds(*fault->stepping - fault->died)));
    }
    for (const Death& death : deaths_)
      plot_.Mark(death.at, Middle(death.rank), "×", "died", death.told);
  }

  const RunReport& report_;
  std::vector<std::uint32_t> ranks_;
  Window window_;
  Limits limits_;
  const FaultReport* close_up_;
  std::vector<const FaultReport*> faults_;  // that are drawn
  std::vector<Death> deaths_;               // on the lanes
  Plot plot_;
};

/// "rank 1 dies", "ranks 1, 3 die".
std::string Dies(const FaultReport& fault) {
  return fmt::format(fmt::runtime(fault.others.empty() ? "rank {} dies" : "ranks {} die"),
                     Ranges(DeadRanks(fault), kMostRankRanges));
}

/// The moments around a fault, wide enough to see its stages; at most eight lanes.
std::string CloseUp(const RunReport& report, const FaultReport& fault) {
  std::set<std::uint32_t> ranks{fault.rank};
  for (const std::uint32_t rank : fault.others) {
    if (rank < report.facts.ranks && ranks.size() < kMostCloseUpLanes) ranks.insert(rank);
  }
  for (std::uint32_t rank = 0; rank < report.facts.ranks && ranks.size() < kMostCloseUpLanes;
       ++rank) {
    ranks.insert(rank);
  }
  const double took = *fault.stepping - fault.died;
  const double room = std::max(0.4 * took, 0.02);
  Lanes lanes(report, {ranks.begin(), ranks.end()}, {fault.died - room, *fault.stepping + room},
              kCloseUp, &fault);
  std::string out = fmt::format("<h3>Up close: {}{}, recovery takes {}</h3>{}", Dies(fault),
                                AtStep(fault), FormatSeconds(took), lanes.Html());
  // The replay is longer than what is drawn, often by far: the bar has it.
  const std::string label = fmt::format("{} lost", LostInWords(fault.lost));
  return out + fmt::format("<h3>{}{}</h3>{}", label,
                           fault.lost.replay > 0 ? ", the replay that follows included" : "",
                           LostBarHtml(fault.lost, label));
}

/// Few faults all get a close-up; of many alike the one that took longest to recover from.
std::vector<const FaultReport*> ChooseCloseUps(const RunReport& report) {
  std::vector<const FaultReport*> chosen;
  for (const FaultReport& fault : report.faults) {
    if (fault.recovered() && fault.rank < report.facts.ranks) chosen.push_back(&fault);
  }
  if (chosen.size() <= kMostCloseUps) return chosen;
  return {*std::max_element(chosen.begin(), chosen.end(),
                            [](const FaultReport* a, const FaultReport* b) {
                              return *a->stepping - a->died < *b->stepping - b->died;
                            })};
}

}  // namespace

bool HasCloseUp(const RunReport& report, const FaultReport& fault) {
  return std::ranges::count(ChooseCloseUps(report), &fault) > 0;
}

namespace {

/// Kept in place: it ran on when the next generation had begun.
bool OutlivedItsGeneration(const RunReport& report, const WorkerSpan& worker) {
  const auto next = std::ranges::find_if(report.generations, [&worker](const auto& generation) {
    return generation.generation > worker.generation;
  });
  return next != report.generations.end() && worker.end.value_or(report.wall) > next->begin;
}

}  // namespace

std::string LanesHtml(const RunReport& report) {
  if (report.workers.empty()) return {};
  const auto ranks = ChooseRanks(report);
  std::vector<LegendEntry> legend{{"gen odd", "generation 1"}};
  bool kept = false;
  if (report.generations.size() > 1) {
    const bool more = report.generations.size() > 2;
    legend = {{"gen odd", more ? "odd generations" : "generation 1"},
              {"gen even", more ? "even generations" : "generation 2"}};
    kept = std::ranges::any_of(report.workers, [&report](const WorkerSpan& worker) {
      return OutlivedItsGeneration(report, worker);
    });
  }
  if (!report.faults.empty()) legend.push_back({"fault", "a rank died"});
  if (std::any_of(report.faults.begin(), report.faults.end(),
                  [](const FaultReport& fault) { return fault.recovered(); })) {
    legend.push_back({"recovery", "every rank runs again"});
  }
  if (!report.checkpoints.empty()) legend.push_back({"checkpoint", "checkpoint"});
  std::string out = LegendHtml(legend) + Lanes(report, ranks, {0, report.wall}, kWhole).Html();
  if (kept) {
    out +=
        "<p class=\"fine\">A rank that is kept after a fault keeps its process, and is drawn with "
        "the "
        "generation that this was started in.</p>";
  }
  if (ranks.size() < report.facts.ranks) {
    out += fmt::format(
        "<p class=\"fine\">{} of {} ranks are drawn: those that died, then the first.</p>",
        ranks.size(), FormatCount(report.facts.ranks));
  }
  for (const FaultReport* fault : ChooseCloseUps(report)) out += CloseUp(report, *fault);
  return Section("Ranks", out);
}

}  // namespace muster::profile
