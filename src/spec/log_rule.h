#pragma once
// A log rule: what the lines of a job's workers must keep showing, must not show, or how a value in
// them must stand. docs/reference/job-file.md explains the keys, docs/guide/log-rules.md their use;
// src/agent/rules judges lines by them. Plain values and their words; HyperPod's names for the keys
// (logPattern, …) are taken beside ours.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::spec {

/// "< 80": what is wrong with a value.
struct Threshold {
  enum class Operator { kBelow, kAtMost, kAbove, kAtLeast, kEqual };
  Operator op = Operator::kAbove;
  double value = 0;
  bool operator==(const Threshold&) const = default;
  bool IsBroken(double number) const;
};

struct LogRule {
  /// Whose lines a rule is about, and when it holds of them.
  enum class Scope {
    kAny,    ///< the job's: a line of any rank counts
    kAll,    ///< the job's: a match counts once every rank has shown one
    kRank0,  ///< a line of rank 0 counts
    kEach,   ///< every rank by itself
  };
  enum class Stream { kOut, kErr, kBoth };
  /// What a captured value means that is no finite number: nan, inf, words.
  enum class NonNumber {
    kSlow,    ///< the same as a value that breaks the threshold
    kFault,   ///< the rule fires at once
    kIgnore,  ///< a match without a value
  };
  enum class Act { kNotify, kDump, kRestartProcess, kRestartJob, kFail, kDrainNode };

  std::string name;
  std::string pattern;                                   ///< RE2 syntax, found anywhere in a line
  std::optional<std::chrono::nanoseconds> start_within;  ///< the first match, from the start
  std::optional<std::chrono::nanoseconds> every;         ///< each further match
  std::optional<Threshold> threshold;                    ///< of the first group's value
  std::uint32_t points = 1;  ///< values in a row that break the threshold
  std::string stop;          ///< a line that ends the rule; empty: none
  bool fault = false;        ///< a match is a fault
  Scope scope = Scope::kAny;
  Stream stream = Stream::kBoth;
  NonNumber on_non_number = NonNumber::kFault;
  Act action = Act::kRestartProcess;
  bool operator==(const LogRule&) const = default;
};

std::string_view NameOf(Threshold::Operator op);  ///< "<", "<=", ">", ">=", "="
std::string_view NameOf(LogRule::Scope scope);
std::string_view NameOf(LogRule::Stream stream);
std::string_view NameOf(LogRule::NonNumber non_number);
std::string_view NameOf(LogRule::Act action);

/// "> 5", "<=0.5", "lteq 80". Invalid says what it takes.
Result<Threshold> ParseThreshold(std::string_view text);
/// "> 5": reads back the same.
std::string FormatThreshold(const Threshold& threshold);
/// HyperPod's words (lt, lteq, gt, gteq, eq) and the signs.
std::optional<Threshold::Operator> ParseOperator(std::string_view word);

std::optional<LogRule::Scope> ParseScope(std::string_view word);
std::optional<LogRule::Stream> ParseStream(std::string_view word);
std::optional<LogRule::NonNumber> ParseNonNumber(std::string_view word);
std::optional<LogRule::Act> ParseAct(std::string_view word);

/// A finite number as programs print them; blanks around it and a plus sign are taken. Nothing for
/// nan, inf and everything else.
std::optional<double> ParseFinite(std::string_view text);

}  // namespace muster::spec
