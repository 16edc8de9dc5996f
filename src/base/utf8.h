#pragma once
// One character of UTF-8, for everybody who walks through text that may be anything. Any thread.

#include <cstddef>
#include <string_view>

namespace muster {

/// The length of the well-formed character at the start; 0 when there is none (RFC 3629: no
/// overlong forms, no surrogates, nothing above U+10FFFF). `text` is not empty.
std::size_t CharacterLength(std::string_view text);

}  // namespace muster
