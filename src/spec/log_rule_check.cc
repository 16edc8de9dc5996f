#include "spec/log_rule_check.h"

#include <fmt/format.h>

#include "spec/pattern.h"

namespace muster::spec {
namespace {

constexpr std::uint32_t kMostPoints = 1'000'000;

using Faulty = std::function<void(const std::string&, std::string)>;

/// Whether it compiles, and what it is then.
std::optional<Pattern> CheckPattern(const std::string& path, const std::string& text,
                                    const Faulty& fault) {
  auto compiled = Pattern::Compile(text);
  if (compiled) return std::move(*compiled);
  fault(path,
        fmt::format("'{}' is not a pattern that RE2 takes: {}", path, compiled.error().message()));
  return std::nullopt;
}

void CheckTime(const std::string& path, const std::optional<std::chrono::nanoseconds>& time,
               const Faulty& fault) {
  if (time && time->count() == 0) {
    fault(path, fmt::format("'{}' is 0; leave it out for no limit", path));
  }
}

void CheckValues(const LogRule& rule, const Pattern& pattern, const std::string& path,
                 const Faulty& fault) {
  if (rule.threshold && !pattern.has_group()) {
    fault(path + ".pattern",
          fmt::format("'{0}.pattern' captures no value for '{0}.threshold': put the number's part "
                      "into parentheses",
                      path));
  }
  const bool values = pattern.has_group() && rule.on_non_number != LogRule::NonNumber::kIgnore;
  if (rule.start_within || rule.every || rule.threshold || rule.fault || values) return;
  fault(path, fmt::format("'{}' never fires: give it startWithin, every, threshold or fault, or "
                          "capture a number",
                          path));
}

}  // namespace

void CheckLogRule(const LogRule& rule, const std::string& path, const Faulty& fault) {
  CheckTime(path + ".startWithin", rule.start_within, fault);
  CheckTime(path + ".every", rule.every, fault);
  if (rule.points == 0 || rule.points > kMostPoints) {
    fault(path + ".points",
          fmt::format("'{}.points' is {}; it goes from 1 to {}", path, rule.points, kMostPoints));
  }
  if (rule.points > 1 && !rule.threshold && rule.on_non_number != LogRule::NonNumber::kSlow) {
    fault(path + ".points",
          fmt::format("'{0}.points' counts values that break '{0}.threshold', which is missing",
                      path));
  }
  if (!rule.stop.empty()) CheckPattern(path + ".stop", rule.stop, fault);
  if (rule.pattern.empty()) {
    return fault(path + ".pattern", fmt::format("'{}.pattern' is missing or empty", path));
  }
  const auto pattern = CheckPattern(path + ".pattern", rule.pattern, fault);
  if (pattern) CheckValues(rule, *pattern, path, fault);
}

}  // namespace muster::spec
