#pragma once
// Which Muster this is, the same in every program and in what they write.

#include <string_view>

namespace muster {

/// "0.1.0".
std::string_view Version();

}  // namespace muster
