#pragma once
// Text that came from outside, made fit to show: valid UTF-8, bounded, without control characters
// or terminal sequences, escaped for HTML. Numbers and times in words for people. Pure.

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::profile {

/// Valid UTF-8 (bad bytes become U+FFFD) of at most `most` bytes; "…" stands for what was cut.
std::string CutText(std::string_view text, std::size_t most);

/// Without ANSI sequences; other control characters but newline and tab become U+FFFD; "\r\n" is
/// a newline and a lone "\r" starts the line anew, as on a terminal.
std::string PlainText(std::string_view text);

/// For HTML text and quoted attributes.
std::string EscapeHtml(std::string_view text);

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
