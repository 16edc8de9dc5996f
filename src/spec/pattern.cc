#include "spec/pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cctype>

namespace muster::spec {
namespace {

// Of the automaton's cache; a pattern that needs more goes on more slowly.
constexpr std::int64_t kMemory = std::int64_t{4} << 20;
constexpr int kMostTries = 4;

/// Bytes as they come are right for every pattern that does not speak of characters beyond ASCII.
bool IsAboutBytes(std::string_view pattern) {
  const bool ascii = std::ranges::all_of(pattern, [](char c) { return (c & 0x80) == 0; });
  return ascii && pattern.find("\\x") == std::string_view::npos &&
         pattern.find("\\p") == std::string_view::npos &&
         pattern.find("\\P") == std::string_view::npos;
}

RE2::Options OptionsFor(std::string_view pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMemory);
  options.set_dot_nl(true);
  options.set_encoding(IsAboutBytes(pattern) ? RE2::Options::EncodingLatin1
                                             : RE2::Options::EncodingUTF8);
  return options;
}

bool IsBackReference(const std::string& argument) {
  return argument.size() >= 2 && argument[0] == '\\' &&
         ((argument[1] >= '1' && argument[1] <= '9') || argument[1] == 'k');
}

std::string WhyNot(const RE2& compiled) {
  const std::string& argument = compiled.error_arg();
  constexpr std::string_view kNoBound = "which RE2 does not have: it would take unbounded time";
  for (const char* ahead : {"(?=", "(?!"}) {
    if (argument.starts_with(ahead)) return fmt::format("look-ahead '{}', {}", ahead, kNoBound);
  }
  for (const char* behind : {"(?<=", "(?<!"}) {
    if (compiled.pattern().find(behind) != std::string::npos && argument.starts_with("(?<")) {
      return fmt::format("look-behind '{}', {}", behind, kNoBound);
    }
  }
  if (compiled.error_code() == RE2::ErrorBadEscape && IsBackReference(argument)) {
    return fmt::format("a reference back to a group, '{}', {}", argument, kNoBound);
  }
  return compiled.error();
}

}  // namespace

struct Pattern::Compiled {
  explicit Compiled(std::string_view pattern)
      : expression(re2::StringPiece(pattern.data(), pattern.size()), OptionsFor(pattern)) {}

  /// Where a match can begin only is the head; a look there is several times as fast as a search.
  void FindHead(std::string_view pattern) {
    literal = RequiredLiteral(pattern);
    from_back = pattern.starts_with(".*") && !pattern.starts_with(".*?");
    if (from_back) pattern.remove_prefix(2);
    head = HeadLiteral(pattern);
    if (!head.empty() && from_back) {
      rest.emplace(re2::StringPiece(pattern.data(), pattern.size()), OptionsFor(pattern));
      if (!rest->ok()) head.clear();
    }
  }

  bool Match(std::string_view text, re2::StringPiece* found, int count) const {
    if (!head.empty()) {
      if (const auto matched = MatchAtHeads(text, found, count)) return *matched;
    }
    return expression.Match({text.data(), text.size()}, 0, text.size(), RE2::UNANCHORED, found,
                            count);
  }

  /// A greedy `.*` in front takes the last place where the rest matches, and nothing in front the
  /// first. Nothing when there are many places: a try at each of them has no bound.
  std::optional<bool> MatchAtHeads(std::string_view text, re2::StringPiece* found,
                                   int count) const {
    const RE2& at_head = rest ? *rest : expression;
    auto place = from_back ? text.rfind(head) : text.find(head);
    for (int tries = 0; place != std::string_view::npos; ++tries) {
      if (tries == kMostTries) return std::nullopt;
      if (at_head.Match({text.data(), text.size()}, place, text.size(), RE2::ANCHOR_START, found,
                        count)) {
        return true;
      }
      if (from_back && place == 0) break;
      place = from_back ? text.rfind(head, place - 1) : text.find(head, place + 1);
    }
    return false;
  }

  RE2 expression;
  std::string literal;
  std::string head;         ///< every match, of what is behind a `.*` in front, begins with it
  bool from_back = false;   ///< there is a greedy `.*` in front
  std::optional<RE2> rest;  ///< what is behind it
};

Pattern::Pattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::Compile(std::string_view text) {
  if (text.size() > kMostBytes) {
    return Error(Code::kInvalid,
                 fmt::format("{} bytes; at most {} are taken", text.size(), kMostBytes));
  }
  auto compiled = std::make_unique<Compiled>(text);
  if (!compiled->expression.ok()) return Error(Code::kInvalid, WhyNot(compiled->expression));
  if (IsAboutBytes(text)) compiled->FindHead(text);
  return Pattern(std::move(compiled));
}

bool Pattern::IsIn(std::string_view text) const { return compiled_->Match(text, nullptr, 0); }

bool Pattern::Find(std::string_view text, std::optional<std::string_view>& group) const {
  group.reset();
  if (!has_group()) return IsIn(text);
  re2::StringPiece found[2];
  if (!compiled_->Match(text, found, 2)) return false;
  if (found[1].data() != nullptr) group = std::string_view(found[1].data(), found[1].size());
  return true;
}

bool Pattern::has_group() const { return compiled_->expression.NumberOfCapturingGroups() > 0; }
const std::string& Pattern::literal() const { return compiled_->literal; }

}  // namespace muster::spec
