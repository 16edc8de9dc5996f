#include "spec/log_rule.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace muster::spec {
namespace {

using Operator = Threshold::Operator;
using Scope = LogRule::Scope;
using Stream = LogRule::Stream;
using NonNumber = LogRule::NonNumber;
using Act = LogRule::Act;

template <typename Value, std::size_t kCount>
using Words = std::array<std::pair<std::string_view, Value>, kCount>;

// The first word of a value is the one that is printed.
constexpr Words<Operator, 12> kOperators = {{{"<", Operator::kBelow},
                                             {"<=", Operator::kAtMost},
                                             {">", Operator::kAbove},
                                             {">=", Operator::kAtLeast},
                                             {"=", Operator::kEqual},
                                             {"==", Operator::kEqual},
                                             {"lt", Operator::kBelow},
                                             {"lteq", Operator::kAtMost},
                                             {"lte", Operator::kAtMost},
                                             {"gt", Operator::kAbove},
                                             {"gteq", Operator::kAtLeast},
                                             {"eq", Operator::kEqual}}};
constexpr Words<Scope, 4> kScopes = {
    {{"any", Scope::kAny}, {"all", Scope::kAll}, {"rank0", Scope::kRank0}, {"each", Scope::kEach}}};
constexpr Words<Stream, 3> kStreams = {
    {{"stdout", Stream::kOut}, {"stderr", Stream::kErr}, {"both", Stream::kBoth}}};
constexpr Words<NonNumber, 3> kNonNumbers = {
    {{"slow", NonNumber::kSlow}, {"fault", NonNumber::kFault}, {"ignore", NonNumber::kIgnore}}};
constexpr Words<Act, 6> kActs = {{{"notify", Act::kNotify},
                                  {"dump", Act::kDump},
                                  {"restart-process", Act::kRestartProcess},
                                  {"restart-job", Act::kRestartJob},
                                  {"fail", Act::kFail},
                                  {"drain-node", Act::kDrainNode}}};

template <typename Value, std::size_t kCount>
std::string_view WordOf(const Words<Value, kCount>& words, Value value) {
  for (const auto& [word, meaning] : words) {
    if (meaning == value) return word;
  }
  return "unknown";
}

template <typename Value, std::size_t kCount>
std::optional<Value> Find(const Words<Value, kCount>& words, std::string_view text) {
  for (const auto& [word, meaning] : words) {
    if (word == text) return meaning;
  }
  return std::nullopt;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace

std::string_view NameOf(Operator op) { return WordOf(kOperators, op); }
std::string_view NameOf(Scope scope) { return WordOf(kScopes, scope); }
std::string_view NameOf(Stream stream) { return WordOf(kStreams, stream); }
std::string_view NameOf(NonNumber non_number) { return WordOf(kNonNumbers, non_number); }
std::string_view NameOf(Act action) { return WordOf(kActs, action); }

std::optional<Operator> ParseOperator(std::string_view word) { return Find(kOperators, word); }
std::optional<Scope> ParseScope(std::string_view word) { return Find(kScopes, word); }
std::optional<Stream> ParseStream(std::string_view word) { return Find(kStreams, word); }
std::optional<NonNumber> ParseNonNumber(std::string_view word) { return Find(kNonNumbers, word); }
std::optional<Act> ParseAct(std::string_view word) { return Find(kActs, word); }

bool Threshold::IsBroken(double number) const {
  switch (op) {
    case Operator::kBelow:
      return number < value;
    case Operator::kAtMost:
      return number <= value;
    case Operator::kAbove:
      return number > value;
    case Operator::kAtLeast:
      return number >= value;
    case Operator::kEqual:
      return number == value;
  }
  return false;
}

std::optional<double> ParseFinite(std::string_view text) {
  text = Trimmed(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (stop != end || text.empty() || error == std::errc::invalid_argument) return std::nullopt;
  // Out of range is both too large and too small for a double; strtod tells which.
  if (error != std::errc()) number = std::strtod(std::string(text).c_str(), nullptr);
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

Result<Threshold> ParseThreshold(std::string_view text) {
  const std::string_view trimmed = Trimmed(text);
  // What is wrong begins with a sign or a word, then the number.
  const auto cut = trimmed.find_first_of("0123456789+-. \t");
  const auto op = ParseOperator(trimmed.substr(0, cut));
  const auto value =
      cut == std::string_view::npos ? std::nullopt : ParseFinite(trimmed.substr(cut));
  if (op && value) return Threshold{*op, *value};
  return Error(Code::kInvalid, "a sign and a number, as '> 5', '<= 0.5' or '= 0'");
}

std::string FormatThreshold(const Threshold& threshold) {
  return fmt::format("{} {}", NameOf(threshold.op), threshold.value);
}

}  // namespace muster::spec
