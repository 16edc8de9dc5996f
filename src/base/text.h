#pragma once
// Text that came from outside, made fit to show: valid UTF-8 (RFC 3629), bounded, without control
// characters or terminal sequences. Whatever prints the content of files or the words of other
// programs for people passes it through here. And counts of things, as people read them. Pure.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

bool IsUtf8(std::string_view text);

/// Valid UTF-8 (bad bytes become U+FFFD) of at most `most` bytes; "…" stands for what was cut.
std::string CutText(std::string_view text, std::size_t most);

/// Without ANSI sequences; other control characters but newline and tab become U+FFFD, those
/// between U+0080 and U+009F too; "\r\n" is a newline and a lone "\r" starts the line anew, as on a
/// terminal.
std::string PlainText(std::string_view text);

/// The same on one line: newlines, returns and tabs become spaces.
std::string PlainLine(std::string_view text);

/// "1234567" → "1,234,567", a sign in front of them or none.
std::string GroupThousands(std::string_view digits);
/// "1,234,567".
std::string FormatCount(std::uint64_t count);
/// "1 shard", "2,000 shards"; `ending` makes the plural of the noun.
std::string Counted(std::uint64_t count, std::string_view noun, std::string_view ending = "s");

}  // namespace muster
