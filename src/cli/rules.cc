// muster rules test JOB LOG…: when each log rule of a job would have fired on old logs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "agent/rules/replay.h"
#include "base/absent.h"
#include "base/text.h"
#include "cli/pages.h"
#include "cli/verb.h"
#include "spec/job.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;
using agent::rules::LineTimeKind;
using agent::rules::OldFiring;
using agent::rules::Replayed;
using std::chrono::nanoseconds;

constexpr Bytes kMostLog = 1_GiB;

struct Arguments {
  std::string job;
  std::vector<std::string> logs;
};

/// A folder stands for every log below it.
Result<std::vector<std::string>> LogsOf(const std::vector<std::string>& words) {
  std::vector<std::string> paths;
  for (const std::string& word : words) {
    std::error_code error;
    if (!std::filesystem::is_directory(word, error)) {
      paths.push_back(word);
      continue;
    }
    std::vector<std::string> inside;
    std::filesystem::recursive_directory_iterator entry(word, error);
    for (; !error && entry != std::filesystem::recursive_directory_iterator();
         entry.increment(error)) {
      const std::string path = entry->path().string();
      if (path.ends_with(".stdout.log") || path.ends_with(".stderr.log")) inside.push_back(path);
    }
    if (inside.empty()) {
      return Error(Code::kNotFound, fmt::format("no rank-R/gen-G.stdout.log below {}", word),
                   "name a log file, or the folder of a run");
    }
    std::ranges::sort(inside);
    paths.insert(paths.end(), inside.begin(), inside.end());
  }
  return paths;
}

std::string ShownTime(const Replayed& replayed, nanoseconds time) {
  if (!replayed.kind) return "-";
  const std::string utc = FormatUtc(WallTime(time));
  // Of a time of day the date is made up.
  return *replayed.kind == LineTimeKind::kInstant ? utc : utc.substr(11, 12);
}

Json TimeJson(const Replayed& replayed, const std::optional<nanoseconds>& time) {
  return replayed.kind && time ? Json(ShownTime(replayed, *time)) : Json();
}

Json FiringJson(const Replayed& replayed, const OldFiring& fired) {
  const nanoseconds time = fired.firing.time.time_since_epoch();
  Json json = {{"at", TimeJson(replayed, time)},
               {"after_s", nullptr},
               {"gen", fired.firing.generation.value()},
               {"rank", fired.firing.rank.value()},
               {"why", fired.firing.why},
               {"action", NameOf(fired.firing.action)},
               {"silence", fired.silence},
               {"log", fired.line > 0 ? Json(fired.log) : Json()},
               {"line", fired.line > 0 ? Json(fired.line) : Json()}};
  if (replayed.first) {
    json["after_s"] = std::chrono::duration<double>(time - *replayed.first).count();
  }
  return json;
}

Json ReportJson(const Arguments& arguments, const std::vector<spec::LogRule>& rules,
                const Replayed& replayed) {
  Json list = Json::array();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    Json firings = Json::array();
    for (const OldFiring& fired : replayed.firings) {
      if (fired.firing.rule == i) firings.push_back(FiringJson(replayed, fired));
    }
    list.push_back({{"name", rules[i].name},
                    {"matches", replayed.matches[i]},
                    {"firings", std::move(firings)}});
  }
  return {{"job", arguments.job},
          {"logs", arguments.logs},
          {"lines", replayed.lines},
          {"times", replayed.kind.has_value()},
          {"first", TimeJson(replayed, replayed.first)},
          {"last", TimeJson(replayed, replayed.last)},
          {"rules", std::move(list)}};
}

std::string FiringText(const Replayed& replayed, const OldFiring& fired) {
  std::string where;
  if (fired.line > 0) {
    where =
        fmt::format(", {}{}:{}", fired.silence ? "before " : "", PlainLine(fired.log), fired.line);
  }
  return fmt::format("  {}  generation {}, rank {}{}: {}; {}\n",
                     ShownTime(replayed, fired.firing.time.time_since_epoch()),
                     fired.firing.generation.value(), fired.firing.rank.value(), where,
                     fired.firing.why, NameOf(fired.firing.action));
}

std::string ReportText(const std::vector<spec::LogRule>& rules, const Replayed& replayed) {
  std::string text;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    std::string firings;
    std::size_t count = 0;
    for (const OldFiring& fired : replayed.firings) {
      if (fired.firing.rule != i) continue;
      firings += FiringText(replayed, fired);
      ++count;
    }
    const std::string times = count == 1 ? "once" : fmt::format("{} times", count);
    text += fmt::format("{}: {}, {}\n", rules[i].name, Counted(replayed.matches[i], "match", "es"),
                        count == 0 ? "would not have fired" : "would have fired " + times);
    text += firings;
  }
  return text;
}

void NoteTimes(const Replayed& replayed) {
  if (replayed.kind) {
    return Note(fmt::format("muster: {}, from {} to {}\n", Counted(replayed.lines, "line"),
                            ShownTime(replayed, *replayed.first),
                            ShownTime(replayed, *replayed.last)));
  }
  Note(WithPages(fmt::format(
      "muster: {}, none of which begins with a time stamp: startWithin and every were not judged\n"
      "  docs/guide/log-rules.md names the stamps that are read\n",
      Counted(replayed.lines, "line"))));
}

Result<std::string> ReadLog(const std::string& path) {
  auto text = PosixFiles().ReadAll(path, kMostLog);
  if (!text && text.error().code() == Code::kNotFound) {
    return Absent("log", path, "look at the name; muster run keeps logs in RUN/logs/rank-R/");
  }
  return Within("read the log", std::move(text));
}

Result<int> Test(const Arguments& arguments, bool json) {
  const spec::Job job = MUSTER_TRY(spec::ReadJob(PosixFiles(), arguments.job)).job;
  if (job.log_rules.empty()) {
    return Error(Code::kInvalid, fmt::format("{} has no spec.logRules", arguments.job),
                 "docs/guide/log-rules.md has three to start from");
  }
  const auto paths = MUSTER_TRY(LogsOf(arguments.logs));
  std::vector<std::string> texts(paths.size());
  std::vector<agent::rules::OldLog> logs;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    texts[i] = MUSTER_TRY(ReadLog(paths[i]));
    logs.push_back({agent::rules::IdOfPath(paths[i]), paths[i], texts[i]});
  }
  const Replayed replayed = MUSTER_TRY(agent::rules::Replay(job.log_rules, logs));
  NoteTimes(replayed);
  const Json document = ReportJson(arguments, job.log_rules, replayed);
  MUSTER_TRY(json ? Print(document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n")
                  : PrintText(ReportText(job.log_rules, replayed)));
  return 0;
}

}  // namespace

void AddRules(CLI::App& parent, Invocation& invocation) {
  CLI::App* rules = AddSubcommand(parent, "rules", "Try log rules on old logs", invocation);
  rules->require_subcommand(1);
  CLI::App* app = AddSubcommand(
      *rules, "test", "When each log rule of a job would have fired on old logs", invocation);
  app->footer(
      "muster rules test job.yaml runs/RUN/logs/rank-0/gen-1.stdout.log\n"
      "muster rules test job.yaml runs/RUN\n\n"
      "Times are the stamps that lines begin with: docs/guide/log-rules.md.");
  auto arguments = std::make_shared<Arguments>();
  app->add_option("JOB", arguments->job, "The job file with the rules")->required();
  app->add_option("LOG", arguments->logs, "Log files, or the folder of a run")->required();
  app->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] { return Test(*arguments, invocation.json); };
  });
}

}  // namespace muster::cli
