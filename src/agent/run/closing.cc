#include "agent/run/closing.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/run/event_log.h"
#include "base/text.h"
#include "profile/report/go_on.h"
#include "profile/report/run_report.h"
#include "profile/report/text.h"

namespace muster::agent {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::seconds;

double ToSeconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

/// What a coordinator takes with it when it ends in order: its socket, the way for other nodes to
/// join, and files that it was about to put in the place of others.
bool IsOfCoordinator(const std::string& name) {
  if (name == "control" || name == "join-token" || name == "join-url") return true;
  if (!name.ends_with(".tmp")) return false;
  for (const char* front : {"generation.", "result.", "fault", "stacks-", "join-"}) {
    if (name.starts_with(front)) return true;
  }
  return false;
}

void ClearUp(FileSystem& files, const std::string& path) {
  const auto names = files.List(path);
  if (!names) return;
  for (const std::string& name : *names) {
    if (IsOfCoordinator(name)) static_cast<void>(files.RemoveAll(path + "/" + name));
  }
}

/// As the report tells it: what the coordinators knew went with them.
RunEnd EndOfRecords(const std::string& path, const RunFolder& folder, const Clock& clock,
                    std::uint64_t& durable) {
  RunEnd end{.folder = path, .begin = folder.created(), .ended = clock.Now()};
  const auto files = profile::RunFiles::Open(path);
  auto records =
      files ? profile::ReadRun(*files, {}, clock) : Result<profile::RunRecords>(files.error());
  if (!records) return end;
  const profile::RunReport report = profile::BuildReport(*std::move(records));
  end.steps = report.steps;
  end.restarts = report.restarts;
  end.lost = report.lost;
  end.goodput = report.goodput;
  if (!report.checkpoints.empty()) durable = report.checkpoints.back().step;
  return end;
}

void TellEnd(Console& console, const RunEnd& end) {
  console.Say(fmt::format("muster: failed after {}: {}",
                          profile::FormatSeconds(ToSeconds(end.ended - end.begin)), end.reason));
  console.Say(fmt::format("muster: {}, {}{}, exit code {}",
                          end.steps ? Counted(*end.steps, "step") : "steps not reported",
                          Counted(end.restarts, "restart"),
                          end.goodput ? ", " + profile::GoodputInWords(*end.goodput, false) : "",
                          end.exit_code));
}

}  // namespace

std::string FormatResult(const RunEnd& end, const Clock& clock) {
  const profile::LostSeconds& lost = end.lost;
  const auto if_exact = [&](double value) { return lost.exact() ? Json(value) : Json(); };
  const Json json = {{"format", "muster-result/1"},
                     {"state", end.succeeded ? "SUCCEEDED" : "FAILED"},
                     {"exit_code", end.exit_code},
                     {"reason", end.reason},
                     {"run", end.folder},
                     {"ended_ns", end.ended.time_since_epoch().count()},
                     {"ended_utc", FormatUtc(clock.Wall())},
                     {"wall_s", ToSeconds(end.ended - end.begin)},
                     {"steps", end.steps ? Json(*end.steps) : Json()},
                     {"restarts", end.restarts},
                     {"lost",
                      {{"detect_s", lost.detect},
                       {"stop_s", lost.stop},
                       {"start_s", lost.start},
                       {"replay_s", if_exact(lost.replay)},
                       {"total_s", if_exact(lost.at_most())},
                       {"at_most_s", lost.at_most()}}},
                     {"goodput", end.goodput ? Json(*end.goodput) : Json()}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ShortPath(const std::string& path) {
  std::error_code gone;
  const std::string here = std::filesystem::current_path(gone).string() + "/";
  return !gone && path.starts_with(here) ? path.substr(here.size()) : path;
}

void TellWhatNext(Console& console, const RunFolder& folder, const WhatNext& next,
                  const std::string& job_yaml) {
  const std::string now = folder.Now();
  if (!next.advice.empty()) console.Say("muster: " + next.advice);
  if (now.empty()) {
    console.Say(fmt::format("muster: the run folder {} is gone, and the run's record with it",
                            folder.path()));
    return;
  }
  const std::string path = ShortPath(now);
  if (now != folder.path()) {
    console.Say(fmt::format("muster: the run folder was moved to {}", profile::ShellWord(now)));
  }
  console.Say(next.log.empty()
                  ? fmt::format("muster: logs in {}/logs", path)
                  : fmt::format("muster: what rank {} wrote: {}/{}", next.rank, path, next.log));
  if (!next.succeeded && next.durable > 0) {
    console.Say(fmt::format("muster: to go on from step {}: {}", next.durable,
                            profile::CommandToGoOn(path, job_yaml)));
  }
  console.Say("muster: the whole story: muster report " + profile::ShellWord(path));
}

std::optional<RunOutcome> EndForCoordinator(const RunOptions& options, RunFolder& folder,
                                            const Error& why, const Clock& clock) {
  FileSystem& files = folder.files();
  const std::string path = folder.Now();
  if (!files.Exists(path + "/run.json") || files.Exists(path + "/result.json")) return std::nullopt;
  ClearUp(files, path);
  std::uint64_t durable = 0;
  RunEnd end = EndOfRecords(path, folder, clock, durable);
  end.exit_code = TraitsOf(why.code()).exit_code;
  end.reason = why.ToString();
  EventLog events(files, path + "/events.jsonl", clock);
  events.GoOn();
  events.Add("run_ended",
             {{"state", "FAILED"}, {"exit_code", end.exit_code}, {"reason", end.reason}});
  const RunOutcome outcome{.exit_code = end.exit_code, .result_json = FormatResult(end, clock)};
  const Status written = folder.Write("result.json", outcome.result_json);
  Console console(ConsoleFor(options), clock);
  TellEnd(console, end);
  if (!written) console.Say("muster: result.json is missing: " + written.error().ToString());
  TellWhatNext(console, folder, {.durable = durable}, options.job_yaml);
  console.Flush(seconds(1));
  return outcome;
}

}  // namespace muster::agent
