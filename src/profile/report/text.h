#pragma once
// Text for people: escaped for HTML; numbers and times in words. What makes text from outside fit
// to show is base/text.h. Pure.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"

namespace muster::profile {

/// For HTML text and quoted attributes.
std::string EscapeHtml(std::string_view text);
/// PlainText for HTML, of at most about `most` bytes as HTML; "…" stands for what was cut.
std::string PlainHtml(std::string_view text, std::size_t most);

/// "240 ms", "41.2 s", "3 min 20 s", "2 h 5 min".
std::string FormatSeconds(double seconds);
/// "1234567" → "1,234,567", a sign in front of them or none.
std::string GroupThousands(std::string_view digits);
/// "1,234,567".
std::string FormatCount(std::uint64_t count);
/// Three or four significant digits, no exponent between 1e-4 and 1e6.
std::string FormatNumber(double value);
/// "1 step", "2 steps".
std::string Plural(std::uint64_t count, std::string_view noun);

}  // namespace muster::profile
