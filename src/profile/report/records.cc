// The only file of this folder that parses JSON.
#include "profile/report/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "profile/report/text.h"

namespace muster::profile {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 8;

/// A parsed object, or a discarded value. Depth is held by the callback, before the tree grows.
json ParseObject(std::string_view text) {
  const auto shallow = [](int depth, json::parse_event_t, json&) {
    return depth <= static_cast<int>(kMaxDepth);
  };
  json document = json::parse(text.begin(), text.end(), shallow, /*allow_exceptions=*/false);
  return document.is_object() ? document : json(json::value_t::discarded);
}

const json* Find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

/// Whole numbers between the limits of Number; 3.0 is a float and none of them.
template <typename Number>
std::optional<Number> Whole(const json& object, const char* key) {
  const json* value = Find(object, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) {
    const auto number = value->get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<Number>::max()))
      return std::nullopt;
    return static_cast<Number>(number);
  }
  if (!value->is_number_integer() || !std::numeric_limits<Number>::is_signed) return std::nullopt;
  return static_cast<Number>(value->get<std::int64_t>());
}

std::optional<double> Real(const json& object, const char* key) {
  const json* value = Find(object, key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const double number = value->get<double>();
  return std::isfinite(number) ? std::optional<double>(number) : std::nullopt;
}

std::string Text(const json& object, const char* key) {
  const json* value = Find(object, key);
  if (value == nullptr) return {};
  if (value->is_string()) return CutText(value->get_ref<const std::string&>(), kMaxText);
  return CutText(value->dump(-1, ' ', false, json::error_handler_t::replace), kMaxText);
}

/// The last kMaxTail bytes of a text, from a whole character on.
std::string Tail(const json& object, const char* key) {
  const json* value = Find(object, key);
  if (value == nullptr || !value->is_string()) return {};
  std::string_view text = value->get_ref<const std::string&>();
  if (text.size() > kMaxTail) text.remove_prefix(text.size() - kMaxTail);
  while (!text.empty() && (static_cast<unsigned char>(text[0]) & 0xC0) == 0x80) {
    text.remove_prefix(1);
  }
  return std::string(text);
}

/// "SIGKILL", also when the record holds the number.
std::string Signal(const json& object) {
  const auto number = Whole<std::uint32_t>(object, "signal");
  if (!number) return Text(object, "signal");
  const char* name = *number < 65 ? ::sigabbrev_np(static_cast<int>(*number)) : nullptr;
  return name == nullptr ? fmt::format("signal {}", *number) : fmt::format("SIG{}", name);
}

std::string Command(const json& object) {
  const json* value = Find(object, "command");
  if (value == nullptr || !value->is_array()) return Text(object, "command");
  std::string out;
  for (const json& word : *value) {
    if (!word.is_string() || out.size() > kMaxText) continue;
    out += (out.empty() ? "" : " ") + word.get_ref<const std::string&>();
  }
  return CutText(out, kMaxText);
}

/// The ranks but `rank` that `ranks` of a fault says failed.
std::vector<std::uint32_t> OthersThatFailed(const json& object, std::uint32_t rank) {
  std::vector<std::uint32_t> others;
  const json* ranks = Find(object, "ranks");
  if (ranks == nullptr || !ranks->is_array()) return others;
  for (const json& one : *ranks) {
    if (!one.is_object() || Text(one, "state") != "failed") continue;
    const auto number = Whole<std::uint32_t>(one, "rank");
    if (number && *number != rank && *number < kMaxRanks) others.push_back(*number);
  }
  return others;
}

std::optional<LostSeconds> Lost(const json& object) {
  const json* lost = Find(object, "lost");
  if (lost == nullptr || !lost->is_object()) return std::nullopt;
  LostSeconds seconds{.detect = Real(*lost, "detect_s").value_or(0),
                      .stop = Real(*lost, "stop_s").value_or(0),
                      .start = Real(*lost, "start_s").value_or(0),
                      .replay = Real(*lost, "replay_s").value_or(0)};
  const bool exact = Find(*lost, "replay_s") != nullptr;
  if (!exact) {
    seconds.unknown = std::max(0.0, Real(*lost, "at_most_s").value_or(0) - seconds.recovery());
  }
  return seconds;
}

/// Times are nanoseconds since the machine started: none is negative, and a century is enough.
std::optional<std::int64_t> Nanoseconds(const json& object, const char* key) {
  constexpr std::int64_t kMost = 3'155'760'000'000'000'000;
  const auto time = Whole<std::int64_t>(object, key);
  if (!time || *time < 0 || *time > kMost) return std::nullopt;
  return time;
}

}  // namespace

Result<RunFacts> ReadRunFacts(std::string_view text) {
  const json document = ParseObject(text);
  const std::string format = document.is_discarded() ? "" : Text(document, "format");
  if (format != "muster-run/1") {
    if (document.is_discarded()) return Error(Code::kDataLoss, "run.json is not a JSON object");
    return Error(Code::kPrecondition,
                 fmt::format("run.json has format '{}'; this muster reads muster-run/1", format));
  }
  const auto created = Nanoseconds(document, "created_ns");
  const auto ranks = Whole<std::uint32_t>(document, "ranks");
  if (!created || !ranks || *ranks == 0 || *ranks > kMaxRanks) {
    return Error(
        Code::kDataLoss,
        fmt::format("run.json lacks created_ns or a number of ranks from 1 to {}", kMaxRanks));
  }
  return RunFacts{.id = Text(document, "id"),
                  .name = Text(document, "name"),
                  .version = Text(document, "version"),
                  .host = Text(document, "host"),
                  .cwd = Text(document, "cwd"),
                  .pid = Whole<std::int64_t>(document, "pid").value_or(0),
                  .created_utc = Text(document, "created_utc"),
                  .created_ns = *created,
                  .ranks = *ranks,
                  .seed = Whole<std::uint64_t>(document, "seed")};
}

Result<RunResult> ReadRunResult(std::string_view text) {
  const json document = ParseObject(text);
  if (document.is_discarded()) return Error(Code::kDataLoss, "result.json is not a JSON object");
  if (const std::string format = Text(document, "format"); format != "muster-result/1") {
    return Error(
        Code::kPrecondition,
        fmt::format("result.json has format '{}'; this muster reads muster-result/1", format));
  }
  RunResult result{.state = Text(document, "state"),
                   .exit_code = Whole<std::int64_t>(document, "exit_code").value_or(0),
                   .reason = Text(document, "reason"),
                   .ended_ns = Nanoseconds(document, "ended_ns").value_or(0),
                   .ended_utc = Text(document, "ended_utc"),
                   .steps = Whole<std::uint64_t>(document, "steps"),
                   .restarts = Whole<std::uint64_t>(document, "restarts"),
                   .lost = Lost(document),
                   .goodput = Real(document, "goodput")};
  if (result.state != "SUCCEEDED" && result.state != "FAILED") {
    return Error(Code::kDataLoss, "result.json lacks a state, SUCCEEDED or FAILED");
  }
  return result;
}

std::optional<EventRecord> ReadEvent(std::string_view line) {
  const json object = ParseObject(line);
  if (object.is_discarded()) return std::nullopt;
  const auto time = Nanoseconds(object, "t_ns");
  EventRecord event{.t_ns = time.value_or(0),
                    .event = Text(object, "event"),
                    .generation = Whole<std::uint64_t>(object, "gen"),
                    .rank = Whole<std::uint32_t>(object, "rank"),
                    .step = Whole<std::uint64_t>(object, "step"),
                    .resume_step = Whole<std::uint64_t>(object, "resume_step"),
                    .died_ns = Nanoseconds(object, "died_ns"),
                    .pid = Whole<std::int64_t>(object, "pid"),
                    .code = Whole<std::int64_t>(object, "code"),
                    .signal = Signal(object),
                    .cause = Text(object, "cause"),
                    .how = Text(object, "how"),
                    .command = Command(object),
                    .stream = Text(object, "stream"),
                    .bytes = Whole<std::uint64_t>(object, "bytes").value_or(0),
                    .kept = Whole<std::uint32_t>(object, "kept").value_or(0),
                    .what = Text(object, "what"),
                    .rule = Text(object, "rule"),
                    .why = Text(object, "why"),
                    .name = Text(object, "name"),
                    .state = Text(object, "state"),
                    .exit_code = Whole<std::int64_t>(object, "exit_code").value_or(0),
                    .node = Text(object, "node"),
                    .reason = Text(object, "reason")};
  if (!time || event.event.empty()) return std::nullopt;
  if (event.rank && *event.rank >= kMaxRanks) return std::nullopt;
  return event;
}

std::optional<StepRow> ReadStep(std::string_view line) {
  const json object = ParseObject(line);
  if (object.is_discarded()) return std::nullopt;
  const auto step = Whole<std::uint64_t>(object, "step");
  const auto generation = Whole<std::uint64_t>(object, "gen");
  const auto begin = Nanoseconds(object, "begin_ns");
  const auto total = Whole<std::uint32_t>(object, "total_us");
  if (!step || !generation || !begin || !total || *step == 0) return std::nullopt;
  StepRow row{.step = *step, .generation = *generation, .begin_ns = *begin, .total_us = *total};
  row.loss = Real(object, "loss").value_or(std::numeric_limits<double>::quiet_NaN());
  const json* phases = Find(object, "phase_us");
  if (phases == nullptr || !phases->is_object()) return row;
  for (std::size_t i = 0; i < kPhases; ++i) {
    row.phase_us[i] = Whole<std::uint32_t>(*phases, kPhaseNames[i].data()).value_or(0);
  }
  return row;
}

std::optional<FaultNote> ReadFault(std::string_view text) {
  const json document = ParseObject(text);
  if (document.is_discarded() || Text(document, "format") != "muster-fault/1") return std::nullopt;
  const auto generation = Whole<std::uint64_t>(document, "generation");
  const auto rank = Whole<std::uint32_t>(document, "rank");
  if (!generation || !rank || *rank >= kMaxRanks) return std::nullopt;
  return FaultNote{.generation = *generation,
                   .rank = *rank,
                   .others = OthersThatFailed(document, *rank),
                   .cause = Text(document, "cause"),
                   .exception = Text(document, "exception"),
                   .decision = Text(document, "decision"),
                   .out_tail = Tail(document, "stdout_tail"),
                   .err_tail = Tail(document, "stderr_tail")};
}

std::optional<EvalRow> ReadEval(std::string_view line) {
  const json object = ParseObject(line);
  if (object.is_discarded()) return std::nullopt;
  const auto step = Whole<std::uint64_t>(object, "step");
  if (!step) return std::nullopt;
  EvalRow row{.step = *step,
              .generation = Whole<std::uint64_t>(object, "gen").value_or(0),
              .accuracy = Real(object, "accuracy"),
              .loss = Real(object, "loss"),
              .samples = Whole<std::uint64_t>(object, "samples").value_or(0)};
  if (!row.accuracy && !row.loss) return std::nullopt;
  return row;
}

}  // namespace muster::profile
