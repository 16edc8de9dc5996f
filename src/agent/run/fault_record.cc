#include "agent/run/fault_record.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "agent/coordinator/plan.h"
#include "os/signals.h"

namespace muster::agent {
namespace {

using Json = nlohmann::ordered_json;

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
                     {"layer", record.fault.ending.start_error != 0 ? "start" : "pidfd"},
                     {"decision", record.decision},
                     {"died_ns", Nanoseconds(DiedAt(fault))},
                     {"pause_ns", Nanoseconds(record.paused)},
                     {"stopped_ns", Nanoseconds(record.stopped)},
                     {"ranks", FormatRanks(record.ranks)},
                     {"command", record.command},
                     {"environment", record.environment},
                     {"error_file", record.error_file},
                     {"stdout_tail", record.out_tail},
                     {"stderr_tail", record.err_tail}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ExceptionLine(const std::string& err_tail) {
  std::size_t end = err_tail.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return {};
  const std::size_t begin = err_tail.find_last_of("\r\n", end);
  std::string line = err_tail.substr(begin == std::string::npos ? 0 : begin + 1);
  line.resize(std::min<std::size_t>(line.find_first_of("\r\n"), line.size()));
  // "<object at 0x7f…>" differs in every process.
  for (std::size_t at = line.find("0x"); at != std::string::npos; at = line.find("0x", at + 2)) {
    std::size_t digits = at + 2;
    while (digits < line.size() && std::isxdigit(static_cast<unsigned char>(line[digits])) != 0) {
      ++digits;
    }
    line.replace(at + 2, digits - at - 2, "…");
  }
  if (line.size() > 500) line.resize(500);
  return line;
}

}  // namespace muster::agent
