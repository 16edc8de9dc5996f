// muster logs RUN: what the workers wrote, merged over ranks by time, also as it comes.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "agent/rules/line_time.h"
#include "base/absent.h"
#include "base/duration.h"
#include "base/text.h"
#include "cli/log_show.h"
#include "cli/verb.h"
#include "profile/logs/log_reader.h"
#include "profile/report/read_run.h"
#include "spec/option_values.h"
#include "spec/pattern.h"

namespace muster::cli {
namespace {

using std::chrono::nanoseconds;

struct LogsFlags {
  std::string folder;
  std::vector<std::uint32_t> ranks;
  std::string stream = "both";
  std::optional<std::uint64_t> generation;
  bool follow = false;
  std::string since;
  std::string grep;
  std::optional<std::uint64_t> tail;
  bool timestamps = false;
};

/// What CLOCK_MONOTONIC of the run's host is behind the wall clock.
std::optional<nanoseconds> ToWall(const profile::RunFacts& facts) {
  const auto created = agent::rules::ReadLineTime(facts.created_utc);
  if (!created || created->kind != agent::rules::LineTimeKind::kInstant) return std::nullopt;
  return created->time - nanoseconds(facts.created_ns);
}

Result<WallTime> ParseSince(const std::string& text, const Clock& clock) {
  if (const auto ago = ParseDuration(text)) return clock.Wall() - *ago;
  const auto stamp = agent::rules::ReadLineTime(text);
  const bool whole = text.find_first_not_of("0123456789-/:.,+TZ ") == std::string::npos;
  if (!stamp || !whole) {
    return Error(Code::kInvalid, fmt::format("--since is '{}', no duration and no time", text),
                 "'5m' is the last five minutes; times are UTC: 2026-11-29T21:38:14, 21:38:14");
  }
  if (stamp->kind == agent::rules::LineTimeKind::kInstant) return WallTime(stamp->time);
  // The last time that it was so late.
  const nanoseconds now = clock.Wall().time_since_epoch();
  nanoseconds time = std::chrono::floor<std::chrono::days>(now) + stamp->time;
  if (time > now) time -= std::chrono::hours(24);
  return WallTime(time);
}

Status CheckRanks(const LogsFlags& flags, const profile::RunFacts& facts) {
  for (const std::uint32_t rank : flags.ranks) {
    if (rank < facts.ranks) continue;
    const std::string last = fmt::to_string(facts.ranks - 1);
    const std::string to = facts.ranks == 1 ? "" : facts.ranks == 2 ? " and " : " to ";
    return Error(
        Code::kNotFound, fmt::format("there is no rank {} in {}", rank, flags.folder),
        fmt::format("it has rank{} 0{}{}", to.empty() ? "" : "s", to, to.empty() ? "" : last));
  }
  return Ok();
}

Status CheckGeneration(const LogsFlags& flags, const profile::LogReader& reader) {
  if (!flags.generation || flags.follow || reader.chosen() > 0) return Ok();
  std::vector<std::uint64_t> generations;
  for (const auto& name : reader.all()) generations.push_back(name.generation);
  std::ranges::sort(generations);
  const auto same = std::ranges::unique(generations);
  generations.erase(same.begin(), same.end());
  std::string has = "no process of it wrote a log";
  if (!generations.empty()) {
    has = fmt::format(
        "there are logs of the processes started in {}",
        generations.size() == 1
            ? fmt::format("generation {}", generations.front())
            : fmt::format("generations {} to {}", generations.front(), generations.back()));
  }
  return Error(Code::kNotFound,
               fmt::format("no log of generation {} in {}", *flags.generation, flags.folder), has);
}

Result<int> Logs(const LogsFlags& flags, const Invocation& invocation) {
  std::optional<spec::Pattern> pattern;
  if (!flags.grep.empty()) {
    auto compiled = spec::Pattern::Compile(flags.grep);
    if (!compiled) return std::move(compiled.error()).Within("--grep");
    pattern = *std::move(compiled);
  }
  const auto files = MUSTER_TRY(profile::RunFiles::Open(flags.folder));
  const profile::RunFacts facts = MUSTER_TRY(profile::ReadFacts(files));
  MUSTER_TRY(CheckRanks(flags, facts));
  const auto to_wall = ToWall(facts);
  // Before the sizes are looked at: then they are the last ones when the run is over.
  const bool over = !files.LockHeld();
  profile::LogQuery query{.choice = {.ranks = flags.ranks,
                                     .generation = flags.generation,
                                     .out = flags.stream != "stderr",
                                     .err = flags.stream != "stdout"},
                          .tail = flags.tail,
                          .pattern = pattern ? &*pattern : nullptr,
                          .to_end = over || !flags.follow};
  if (!flags.since.empty()) {
    query.since_wall = MUSTER_TRY(ParseSince(flags.since, SystemClock()));
    if (to_wall) query.since_ns = (query.since_wall.time_since_epoch() - *to_wall).count();
  }
  auto reader = MUSTER_TRY(profile::LogReader::Open(files, query));
  MUSTER_TRY(CheckGeneration(flags, reader));
  if (query.since_ns && reader.without_times() > 0) {
    Note(fmt::format("muster: {} without times: shown whole if written since then\n",
                     Counted(reader.without_times(), "log")));
  }
  const std::vector<std::uint32_t> one(flags.ranks.size(),
                                       flags.ranks.empty() ? 0 : flags.ranks[0]);
  const LogLook look{.json = invocation.json,
                     .prefix = facts.ranks > 1 && (flags.ranks.empty() || flags.ranks != one),
                     .times = flags.timestamps,
                     .terminal = ::isatty(STDOUT_FILENO) == 1,
                     .to_wall = to_wall,
                     .run = AbsolutePath(flags.folder)};
  return ShowLogs(files, reader, look, flags.follow && !over);
}

}  // namespace

void AddLogs(CLI::App& parent, Invocation& invocation) {
  CLI::App* app = AddSubcommand(
      parent, "logs", "What the ranks of a run wrote, merged by time; -f as it comes", invocation);
  app->footer(
      "muster logs RUN --rank 3 --stream stderr --tail 20\n"
      "muster logs RUN -f --grep 'loss=(nan|inf)'\n"
      "muster logs RUN --since 5m --timestamps\n\n"
      "Piped, one rank's lines are its bytes; lines of several ranks begin with [rank "
      "generation].");
  auto flags = std::make_shared<LogsFlags>();
  app->add_option("RUN", flags->folder, "The run's folder")->required();
  app->add_option("--rank", flags->ranks, "Of this rank only; may be given again")
      ->allow_extra_args(false);
  spec::TakeOneOf(
      *app->add_option("--stream", flags->stream, "stdout, stderr or both")->capture_default_str(),
      {"stdout", "stderr", "both"});
  app->add_option("--gen", flags->generation,
                  "Of the processes that were started in this generation");
  app->add_flag("-f,--follow", flags->follow, "Go on until the run is over");
  app->add_option("--since", flags->since, "Lines since then: 5m (ago), or a time in UTC");
  app->add_option("--grep", flags->grep, "Lines in which this pattern (RE2) is found");
  app->add_option("--tail", flags->tail, "The last lines of what is there, so many");
  app->add_flag("--timestamps", flags->timestamps, "When a line came, in front of it");
  app->callback([flags, &invocation] {
    invocation.action = [flags, &invocation] { return Logs(*flags, invocation); };
  });
}

}  // namespace muster::cli
