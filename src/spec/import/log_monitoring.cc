#include "spec/import/log_monitoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/duration.h"
#include "spec/pattern.h"

namespace muster::spec {
namespace {

using Fate = ImportedField::Fate;

constexpr std::uint64_t kMostSeconds = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kLongestName = 63;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// "GPU Error" → "GPU-Error": names here are letters and digits, with . _ - between them.
std::string Name(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, kLongestName)) {
    const bool taken = IsNameByte(c) || c == '.' || c == '_' || c == '-';
    if (taken) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  const auto begin = std::ranges::find_if(name, IsNameByte);
  name.erase(name.begin(), begin);
  while (!name.empty() && !IsNameByte(name.back())) name.pop_back();
  return name;
}

/// One entry of the list.
class RuleReader {
 public:
  RuleReader(const Value& value, std::string path, std::string ours, Import& import)
      : value_(value),
        ours_(std::move(ours)),
        import_(import),
        fields_(value, std::move(path), import) {}

  LogRule Read(bool several) {
    Texts();
    Seconds("expectedStartCutOffInSeconds", "startWithin", rule_.start_within);
    Seconds("expectedRecurringFrequencyInSeconds", "every", rule_.every);
    Metric();
    Fault();
    fields_.Finish();
    const auto pattern = Pattern::Compile(rule_.pattern);
    const bool group = pattern && pattern->has_group();
    // There the group is a value only beside a threshold; here it would be judged as a number.
    if (group && !rule_.threshold) rule_.on_non_number = LogRule::NonNumber::kIgnore;
    if (rule_.on_non_number == LogRule::NonNumber::kIgnore)
      import_.out.sources.insert_or_assign(ours_ + ".onNonNumber", "the missing metricThreshold");
    if (several && (rule_.start_within || rule_.every)) {
      rule_.scope = LogRule::Scope::kRank0;
      import_.out.sources.insert_or_assign(ours_ + ".scope", "there being several nodes");
      import_.Note(Fate::kTaken, value_, fields_.PathOf("(scope)"),
                   fmt::format("{}.scope: rank0, as there are several nodes; each, where every "
                               "rank prints the line",
                               ours_));
    }
    return rule_;
  }

  /// Whether it can ever fire.
  bool HasCondition() const {
    return rule_.start_within || rule_.every || rule_.threshold || rule_.fault;
  }

 private:
  void Took(const Value& value, std::string_view theirs, std::string_view ours,
            std::string_view shown) {
    import_.Took(value, fields_.PathOf(theirs), fmt::format("{}.{}", ours_, ours), shown);
  }

  void Texts() {
    if (const Value* name = fields_.Text("name")) {
      rule_.name = Name(name->text);
      Took(*name, "name", "name", rule_.name);
    }
    if (const Value* pattern = fields_.Text("logPattern")) {
      rule_.pattern = pattern->text;
      Took(*pattern, "logPattern", "pattern", ShortValue(*pattern));
    }
    if (const Value* stop = fields_.Text("stopPattern")) {
      rule_.stop = stop->text;
      Took(*stop, "stopPattern", "stop", ShortValue(*stop));
    }
  }

  void Seconds(std::string_view theirs, std::string_view ours,
               std::optional<std::chrono::nanoseconds>& out) {
    std::uint64_t seconds = 0;
    const Value* value = fields_.Whole(theirs, kMostSeconds, seconds);
    if (value == nullptr) return;
    out = std::chrono::seconds(seconds);
    Took(*value, theirs, ours, FormatExact(*out));
  }

  void Metric() {
    const Value* number = fields_.Text("metricThreshold");
    const Value* word = fields_.Text("operator");
    std::uint64_t points = 1;
    const Value* count = fields_.Whole("metricEvaluationDataPoints", kMostSeconds, points);
    const auto limit = number != nullptr ? ParseFinite(number->text) : std::nullopt;
    const auto op = word != nullptr ? ParseOperator(word->text) : std::nullopt;
    if (number != nullptr && !limit) fields_.Expected(*number, "metricThreshold", "a number");
    if (word != nullptr && !op) fields_.Expected(*word, "operator", "lt, lteq, gt, gteq or eq");
    if (limit && op) {
      rule_.threshold = Threshold{*op, *limit};
      Took(*number, "metricThreshold", "threshold", FormatThreshold(*rule_.threshold));
      import_.Note(Fate::kTaken, *word, fields_.PathOf("operator"),
                   fmt::format("{}.threshold", ours_));
      if (count == nullptr) return;
      rule_.points = static_cast<std::uint32_t>(points);
      return Took(*count, "metricEvaluationDataPoints", "points", std::to_string(points));
    }
    constexpr std::string_view kAlone =
        "metricThreshold and operator count together only, in HyperPod too";
    if (number != nullptr && word == nullptr)
      import_.Note(Fate::kNoMeaning, *number, fields_.PathOf("metricThreshold"),
                   std::string(kAlone));
    if (word != nullptr && number == nullptr)
      import_.Note(Fate::kNoMeaning, *word, fields_.PathOf("operator"), std::string(kAlone));
    if (count != nullptr)
      import_.Note(Fate::kNoMeaning, *count, fields_.PathOf("metricEvaluationDataPoints"),
                   "it counts values beyond a threshold, and there is none");
  }

  void Fault() {
    const Value* value = fields_.Text("faultOnMatch");
    if (value == nullptr) return;
    if (value->text != "true" && value->text != "false")
      return fields_.Expected(*value, "faultOnMatch", "true or false");
    rule_.fault = value->text == "true";
    Took(*value, "faultOnMatch", "fault", value->text);
  }

  const Value& value_;
  std::string ours_;
  Import& import_;
  Fields fields_;
  LogRule rule_;
};

}  // namespace

void ReadLogMonitoring(Fields& policy, bool several, Import& import) {
  const Value* list = policy.List("logMonitoringConfiguration");
  if (list == nullptr) return;
  const std::string path = policy.PathOf("logMonitoringConfiguration");
  std::vector<LogRule>& rules = import.out.job.log_rules;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    const std::size_t noted = import.out.fields.size();
    RuleReader reader(list->items[i], at, fmt::format("spec.logRules[{}]", rules.size()), import);
    LogRule rule = reader.Read(several);
    if (rule.pattern.empty() || reader.HasCondition()) {
      rules.push_back(std::move(rule));
    } else {
      import.out.fields.resize(noted);
      import.Note(Fate::kNoMeaning, list->items[i], at,
                  "left out: it says nothing that could be wrong, here and in HyperPod");
    }
  }
}

}  // namespace muster::spec
