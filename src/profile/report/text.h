#pragma once
// Text for people: escaped for HTML; numbers and times in words. What makes text from outside fit
// to show is base/text.h. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace muster::profile {

/// For HTML text and quoted attributes.
std::string EscapeHtml(std::string_view text);
/// PlainText for HTML, of at most about `most` bytes as HTML; "…" stands for what was cut.
std::string PlainHtml(std::string_view text, std::size_t most);

/// "240 ms", "41.2 s", "3 min 20 s", "2 h 5 min".
std::string FormatSeconds(double seconds);
/// "goodput 95.3 %"; `struck_early`: a fault came before the first step, from which on it counts.
std::string GoodputInWords(double goodput, bool struck_early);
/// Three or four significant digits, no exponent between 1e-4 and 1e6.
std::string FormatNumber(double value);
/// {1, 2, 3, 7} → "1–3, 7"; "…" stands for those behind `most` ranges.
std::string Ranges(std::vector<std::uint64_t> numbers, std::size_t most = 8);

}  // namespace muster::profile
