#include "profile/report/report_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "profile/report/text.h"

namespace muster::profile {
namespace {

using Json = nlohmann::ordered_json;

/// Rounded to a microsecond: what is below is noise, and the text stays short.
double Round(double seconds) { return std::round(seconds * 1e6) / 1e6; }

Json Seconds(const std::optional<double>& seconds) {
  return seconds ? Json(Round(*seconds)) : Json(nullptr);
}

template <typename Value>
Json OrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json Phases(const std::array<double, kPhases>& seconds) {
  Json object = Json::object();
  for (std::size_t i = 0; i < kPhases; ++i) object[std::string(kPhaseNames[i])] = Round(seconds[i]);
  return object;
}

Json Lost(const LostSeconds& lost) {
  const auto if_exact = [&](double seconds) {
    return lost.exact() ? Json(Round(seconds)) : Json();
  };
  return {{"detect_s", Round(lost.detect)},    {"stop_s", Round(lost.stop)},
          {"start_s", Round(lost.start)},      {"replay_s", if_exact(lost.replay)},
          {"total_s", if_exact(lost.total())}, {"at_most_s", Round(lost.at_most())}};
}

template <typename Item>
Json ToList(const std::vector<Item>& items, Json (*to_json)(const Item&)) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(to_json(item));
  return list;
}

Json FromGeneration(const GenerationSpan& generation) {
  return {{"gen", generation.generation},
          {"begin_s", Round(generation.begin)},
          {"ready_s", Seconds(generation.ready)},
          {"resume_step", OrNull(generation.resume_step)}};
}

Json FromWorker(const WorkerSpan& worker) {
  return {
      {"rank", worker.rank},          {"gen", worker.generation}, {"begin_s", Round(worker.begin)},
      {"end_s", Seconds(worker.end)}, {"pid", worker.pid},        {"how", worker.how},
      {"exit", worker.exit},          {"cause", worker.cause}};
}

Json FromFault(const FaultReport& fault) {
  const bool stepped = fault.steps_known && !fault.no_step_left;
  return {{"gen", fault.generation},
          {"rank", fault.rank},
          {"others", fault.others},
          {"cause", fault.cause},
          {"exit", fault.exit},
          {"what", fault.what},
          {"exception", PlainLine(fault.exception)},
          {"decision", fault.decision},
          {"step", OrNull(fault.step)},
          {"died_s", Round(fault.died)},
          {"paused_s", Seconds(fault.paused)},
          {"stopped_s", Seconds(fault.stopped)},
          {"restarted_s", Seconds(fault.restarted)},
          {"stepping_s", stepped ? Seconds(fault.stepping) : Json()},
          {"caught_up_s", Seconds(fault.caught_up)},
          {"cut_s", Seconds(fault.cut)},
          {"recovery_s", Seconds(fault.recovery())},
          {"lost", Lost(fault.lost)}};
}

Json FromCheckpoint(const CheckpointMark& mark) {
  return {{"at_s", Round(mark.at)}, {"gen", mark.generation}, {"step", mark.step}};
}

Json FromEval(const EvalRow& eval) {
  return {{"step", eval.step},
          {"gen", eval.generation},
          {"accuracy", OrNull(eval.accuracy)},
          {"loss", OrNull(eval.loss)},
          {"samples", eval.samples}};
}

Json FromLoss(const LossPoint& point) {
  return {{"first_step", point.first_step},
          {"last_step", point.last_step},
          {"min", point.min},
          {"mean", point.mean},
          {"max", point.max},
          {"smooth", point.smooth}};
}

Json FromStepTime(const StepTimePoint& point) {
  return {{"first_step", point.first_step}, {"last_step", point.last_step},
          {"mean_s", Round(point.mean)},    {"p95_s", Round(point.p95)},
          {"max_s", Round(point.max)},      {"phase_s", Phases(point.phase)}};
}

Json FromReplay(const ReplaySpan& span) {
  return {{"first_step", span.first_step}, {"last_step", span.last_step}, {"gen", span.generation}};
}

Json FromTail(const LogTail& tail) {
  return {{"gen", tail.generation},
          {"rank", tail.rank},
          {"stream", tail.stream},
          {"text", PlainText(tail.text)}};
}

Json FromFacts(const RunFacts& facts) {
  return {{"id", facts.id},       {"name", facts.name},        {"version", facts.version},
          {"host", facts.host},   {"pid", facts.pid},          {"created_utc", facts.created_utc},
          {"ranks", facts.ranks}, {"seed", OrNull(facts.seed)}};
}

Json FromBudget(const RunReport& report) {
  const TimeBudget& budget = report.budget;
  const bool known = report.step_times.samples > 0;
  const auto part = [known](double seconds) { return known ? Json(Round(seconds)) : Json(); };
  return {{"startup_s", part(budget.startup)},
          {"training_s", part(budget.training)},
          {"lost_s", part(budget.lost)},
          {"ending_s", part(budget.ending)},
          {"other_s", part(budget.other)}};
}

Json FromStepTimes(const StepTimes& times) {
  return {{"samples", times.samples},       {"median_s", Round(times.median)},
          {"p95_s", Round(times.p95)},      {"max_s", Round(times.max)},
          {"phase_s", Phases(times.phase)}, {"points", ToList(times.points, FromStepTime)}};
}

}  // namespace

std::string ReportJson(const RunReport& report) {
  const Json document = {{"format", "muster-report/1"},
                         {"verdict", Verdict(report)},
                         {"state", NameOf(report.state)},
                         {"exit_code", OrNull(report.exit_code)},
                         {"reason", report.reason},
                         {"run", FromFacts(report.facts)},
                         {"command", report.command},
                         {"go_on", report.go_on.empty() ? Json() : Json(report.go_on)},
                         {"ended_utc", report.ended_utc},
                         {"wall_s", Round(report.wall)},
                         {"steps", OrNull(report.steps)},
                         {"restarts", report.restarts},
                         {"goodput", OrNull(report.goodput)},
                         {"lost", Lost(report.lost)},
                         {"budget", FromBudget(report)},
                         {"faults", ToList(report.faults, FromFault)},
                         {"generations", ToList(report.generations, FromGeneration)},
                         {"workers", ToList(report.workers, FromWorker)},
                         {"checkpoints", ToList(report.checkpoints, FromCheckpoint)},
                         {"evals", ToList(report.evals, FromEval)},
                         {"replays", ToList(report.replays, FromReplay)},
                         {"losses", ToList(report.losses, FromLoss)},
                         {"losses_not_finite", report.losses_not_finite},
                         {"step_times", FromStepTimes(report.step_times)},
                         {"log_tails", ToList(report.tails, FromTail)},
                         {"job_yaml", CutText(report.job_yaml, 256 << 10)},
                         {"notes", report.notes}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster::profile
