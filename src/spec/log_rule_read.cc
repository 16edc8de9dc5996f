#include "spec/log_rule_read.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

namespace muster::spec {
namespace {

/// Ours, and what HyperPod calls it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kTwice = {
    {{"pattern", "logPattern"},
     {"startWithin", "expectedStartCutOffInSeconds"},
     {"every", "expectedRecurringFrequencyInSeconds"},
     {"threshold", "metricThreshold"},
     {"points", "metricEvaluationDataPoints"},
     {"stop", "stopPattern"},
     {"fault", "faultOnMatch"}}};

bool IsScalar(const Value& value) {
  return value.kind == Value::Kind::kText || value.kind == Value::Kind::kPlain;
}

class RuleReader {
 public:
  RuleReader(const Value& value, const std::string& path, Findings& findings)
      : keys_(value, path, findings), findings_(findings) {}

  LogRule Read() {
    LogRule rule;
    keys_.Text("name", rule.name);
    keys_.Text("pattern", rule.pattern);
    keys_.Text("logPattern", rule.pattern);
    keys_.Time("startWithin", rule.start_within);
    Seconds("expectedStartCutOffInSeconds", rule.start_within);
    keys_.Time("every", rule.every);
    Seconds("expectedRecurringFrequencyInSeconds", rule.every);
    ReadThreshold(rule.threshold);
    ReadMetric(rule.threshold);
    keys_.Whole("points", rule.points);
    keys_.Whole("metricEvaluationDataPoints", rule.points);
    keys_.Text("stop", rule.stop);
    keys_.Text("stopPattern", rule.stop);
    keys_.Flag("fault", rule.fault);
    keys_.Flag("faultOnMatch", rule.fault);
    Word("scope", "any, all, rank0 or each", ParseScope, rule.scope);
    Word("stream", "stdout, stderr or both", ParseStream, rule.stream);
    Word("onNonNumber", "slow, fault or ignore", ParseNonNumber, rule.on_non_number);
    Word("action", "notify, dump, restart-process, restart-job, fail or drain-node", ParseAct,
         rule.action);
    UniteNames();
    keys_.Finish();
    return rule;
  }

 private:
  void Seconds(std::string_view key, std::optional<std::chrono::nanoseconds>& out) {
    const Value* value = keys_.Take(key);
    if (value == nullptr) return;
    const auto seconds = ToWhole(*value);
    if (seconds && *seconds <= std::numeric_limits<std::int32_t>::max()) {
      out = std::chrono::seconds(*seconds);
    } else {
      keys_.Expected(*value, key, "a whole number of seconds");
    }
  }

  void ReadThreshold(std::optional<Threshold>& out) {
    const Value* value = keys_.Take("threshold");
    if (value == nullptr || (IsScalar(*value) && value->text == "none")) return;
    const auto threshold = ParseThreshold(IsScalar(*value) ? value->text : "");
    if (!threshold) return keys_.Expected(*value, "threshold", threshold.error().message());
    out = *threshold;
  }

  /// HyperPod's pair: the number, and in which direction it is wrong.
  void ReadMetric(std::optional<Threshold>& out) {
    const Value* number = keys_.Take("metricThreshold");
    const Value* word = keys_.Take("operator");
    if (number == nullptr && word == nullptr) return;
    if (number == nullptr || word == nullptr) {
      const Value& there = number == nullptr ? *word : *number;
      findings_.Add(there.place, keys_.path(),
                    fmt::format("'{}' has {}; metricThreshold and operator go together",
                                keys_.path(), number == nullptr ? "operator" : "metricThreshold"));
      return;
    }
    const auto value = IsScalar(*number) ? ParseFinite(number->text) : std::nullopt;
    if (!value) keys_.Expected(*number, "metricThreshold", "a number");
    const auto op = IsScalar(*word) ? ParseOperator(word->text) : std::nullopt;
    if (!op) keys_.Expected(*word, "operator", "lt, lteq, gt, gteq or eq");
    if (value && op) out = Threshold{*op, *value};
  }

  template <typename Enum>
  void Word(std::string_view key, std::string_view words,
            std::optional<Enum> (*parse)(std::string_view), Enum& out) {
    const Value* value = keys_.Take(key);
    if (value == nullptr) return;
    const auto parsed = IsScalar(*value) ? parse(value->text) : std::nullopt;
    if (!parsed) return keys_.Expected(*value, key, words);
    out = *parsed;
  }

  /// A key is given under either name, and not under both.
  void UniteNames() {
    for (const auto& [ours, theirs] : kTwice) {
      const Value* second = keys_.Take(theirs);
      if (second == nullptr) continue;
      if (keys_.Take(ours) == nullptr) {
        findings_.Seen(keys_.PathOf(ours), second->place);
        continue;
      }
      findings_.Add(second->place, keys_.PathOf(theirs),
                    fmt::format("'{}' and '{}' are the same key, and both are given",
                                keys_.PathOf(ours), theirs));
    }
  }

  ObjectReader keys_;
  Findings& findings_;
};

}  // namespace

LogRule ReadLogRule(const Value& value, const std::string& path, Findings& findings) {
  return RuleReader(value, path, findings).Read();
}

}  // namespace muster::spec
