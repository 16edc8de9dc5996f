#include "spec/pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cctype>

namespace muster::spec {
namespace {

// Of the automaton's cache; a pattern that needs more goes on more slowly.
constexpr std::int64_t kMemory = std::int64_t{4} << 20;

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
  RE2 expression;
  std::string literal;
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
  if (IsAboutBytes(text)) compiled->literal = RequiredLiteral(text);
  return Pattern(std::move(compiled));
}

bool Pattern::IsIn(std::string_view text) const {
  return compiled_->expression.Match({text.data(), text.size()}, 0, text.size(), RE2::UNANCHORED,
                                     nullptr, 0);
}

bool Pattern::Find(std::string_view text, std::optional<std::string_view>& group) const {
  group.reset();
  if (!has_group()) return IsIn(text);
  re2::StringPiece found[2];
  if (!compiled_->expression.Match({text.data(), text.size()}, 0, text.size(), RE2::UNANCHORED,
                                   found, 2)) {
    return false;
  }
  if (found[1].data() != nullptr) group = std::string_view(found[1].data(), found[1].size());
  return true;
}

bool Pattern::has_group() const { return compiled_->expression.NumberOfCapturingGroups() > 0; }
const std::string& Pattern::literal() const { return compiled_->literal; }

}  // namespace muster::spec
