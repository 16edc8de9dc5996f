#include "agent/run/fault_record.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "agent/coordinator/plan.h"
#include "os/signals.h"

namespace muster::agent {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLine = 500;
constexpr int kMostLines = 12;

Json Nanoseconds(Instant time) {
  if (time == Instant{}) return nullptr;
  return time.time_since_epoch().count();
}

Json FormatEnding(const Ending& ending) {
  Json json;
  if (ending.start_error != 0) {
    json["start_errno"] = ending.start_error;
  } else if (ending.signal != 0) {
    json["signal"] = os::SignalName(ending.signal);
    json["signal_number"] = ending.signal;
  } else {
    json["code"] = ending.code;
  }
  if (ending.oom_kills > 0) json["oom_kills"] = ending.oom_kills;
  return json;
}

std::string_view NameOf(RankState state) {
  switch (state) {
    case RankState::kIdle:
      return "idle";
    case RankState::kStarting:
      return "starting";
    case RankState::kRunning:
      return "running";
    case RankState::kFinished:
      return "finished";
    case RankState::kFailed:
      return "failed";
    case RankState::kStopped:
      return "stopped";
  }
  return "unknown";
}

Json FormatRanks(const std::vector<RankStatus>& ranks) {
  Json list = Json::array();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Json rank = {{"rank", i},
                 {"state", NameOf(ranks[i].state)},
                 {"step", ranks[i].step},
                 {"durable_step", ranks[i].durable}};
    if (ranks[i].ending) rank["exit"] = FormatEnding(*ranks[i].ending);
    list.push_back(std::move(rank));
  }
  return list;
}

std::string_view Trimmed(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t");
  return begin == std::string_view::npos
             ? std::string_view{}
             : line.substr(begin, line.find_last_not_of(" \t") + 1 - begin);
}

/// Without "[rank1]: ", which torch puts in front of every line of a traceback.
std::string_view WithoutRank(std::string_view line) {
  if (!line.starts_with("[rank")) return line;
  const auto end = line.find("]:");
  return end == std::string_view::npos ? line : Trimmed(line.substr(end + 2));
}

/// Lower case, of the beginning.
std::string Folded(std::string_view text) {
  std::string out(text.substr(0, kMostLine));
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// "error: …", "train.py: error: …", "ValueError: …", "torch.OutOfMemoryError: …", "fatal: …".
bool NamesAnError(std::string_view line) {
  const auto colon = line.find(':');
  const std::string head = Folded(line.substr(0, colon));
  const bool one_word = head.find(' ') == std::string::npos;
  if (colon == std::string_view::npos) return one_word && head.ends_with("error");
  return (one_word && (head.ends_with("error") || head.ends_with("exception"))) ||
         head == "fatal" || Folded(line).find(": error: ") != std::string::npos;
}

/// What programs say to whom they could not understand: true of every mistake.
bool IsHintToUsage(std::string_view line) {
  const std::string text = Folded(line);
  return text.starts_with("usage:") ||
         ((text.starts_with("run ") || text.starts_with("try ") || text.starts_with("see ") ||
           text.starts_with("for more ")) &&
          text.find("help") != std::string::npos);
}

/// Of the last lines the one that names an error, else the last that is more than a hint.
std::string_view TellingLine(std::string_view text) {
  std::string_view last;
  std::string_view fallback;
  for (int seen = 0; seen < kMostLines && !text.empty();) {
    const auto cut = text.find_last_of("\r\n");
    const std::string_view whole = cut == std::string_view::npos ? text : text.substr(cut + 1);
    text = cut == std::string_view::npos ? std::string_view{} : text.substr(0, cut);
    const std::string_view line = WithoutRank(Trimmed(whole));
    if (line.empty()) continue;
    ++seen;
    if (NamesAnError(line)) return Folded(line).starts_with("error: ") ? line.substr(7) : line;
    if (fallback.empty()) fallback = line;
    if (last.empty() && !IsHintToUsage(line)) last = line;
  }
  return last.empty() ? fallback : last;
}

/// Which watch spoke first.
std::string LayerOf(const Ending& ending) {
  if (ending.start_error != 0) return "start";
  if (!ending.with.empty()) return "node";
  if (!ending.rule.name.empty()) return "log-rule";
  if (ending.hang.empty()) return "pidfd";
  return ending.still ? "stillness" : "heartbeat";
}

Json RuleOf(const Ending& ending) {
  return ending.rule.name.empty() ? Json() : Json(ending.rule.name);
}

Json StacksOf(const FaultRecord& record) {
  if (record.stacks.empty()) return nullptr;
  Json groups = Json::array();
  for (const StackGroup& group : record.stacks) {
    groups.push_back({{"ranks", group.ranks}, {"at", group.place}});
  }
  return {{"file", record.stacks_file}, {"groups", std::move(groups)}};
}

}  // namespace

std::string FormatFault(const FaultRecord& record) {
  const Fault& fault = record.fault;
  const Json json = {{"format", "muster-fault/1"},
                     {"rank", fault.rank.value()},
                     {"generation", fault.generation.value()},
                     {"step", fault.steps ? Json(fault.step) : Json()},
                     {"cause", Describe(fault.ending)},
                     {"exit", FormatEnding(fault.ending)},
                     {"exception", fault.exception},
                     {"layer", LayerOf(fault.ending)},
                     {"log_rule", RuleOf(fault.ending)},
                     {"decision", record.decision},
                     {"died_ns", Nanoseconds(DiedAt(fault))},
                     {"pause_ns", Nanoseconds(record.paused)},
                     {"stopped_ns", Nanoseconds(record.stopped)},
                     {"ranks", FormatRanks(record.ranks)},
                     {"stacks", StacksOf(record)},
                     {"command", record.command},
                     {"environment", record.environment},
                     {"error_file", record.error_file},
                     {"stdout_tail", record.out_tail},
                     {"stderr_tail", record.err_tail}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ExceptionLine(const std::string& err_tail) {
  std::string line(TellingLine(err_tail));
  // "<object at 0x7f…>" differs in every process.
  for (std::size_t at = line.find("0x"); at != std::string::npos; at = line.find("0x", at + 2)) {
    std::size_t digits = at + 2;
    while (digits < line.size() && std::isxdigit(static_cast<unsigned char>(line[digits])) != 0) {
      ++digits;
    }
    line.replace(at + 2, digits - at - 2, "…");
  }
  if (line.size() > kMostLine) line.resize(kMostLine);
  return line;
}

}  // namespace muster::agent
