#pragma once
// A regular expression of a job file: RE2 syntax, time linear in the line whatever the pattern and
// the bytes are. Look-around and references back to a group are refused by name, because they have
// no such bound. Found anywhere in a text; a text holds any bytes: `.` is any byte of it unless the
// pattern itself holds characters beyond ASCII. Matching is const and may be done by any thread.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::spec {

class Pattern {
 public:
  static constexpr std::size_t kMostBytes = 4096;

  /// Invalid: why, without the place: "has look-ahead '(?=', which RE2 …".
  static Result<Pattern> Compile(std::string_view text);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  bool IsIn(std::string_view text) const;
  /// The same; `group` becomes what the first group took, nothing when it took no part.
  bool Find(std::string_view text, std::optional<std::string_view>& group) const;
  bool has_group() const;
  /// A text without which the pattern cannot match, at least 2 bytes; empty when none is known.
  const std::string& literal() const;

 private:
  struct Compiled;
  explicit Pattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

/// What Pattern::literal says, of a pattern that RE2 takes. It may know none where there is one,
/// and never names one that is not needed.
std::string RequiredLiteral(std::string_view pattern);
/// The text that every match of a pattern begins with, at least 2 bytes; empty when none is known.
std::string HeadLiteral(std::string_view pattern);

}  // namespace muster::spec
