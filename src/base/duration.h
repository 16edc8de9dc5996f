#pragma once
// Durations as people write and read them. Parse and FormatExact are exact in nanoseconds and each
// other's inverse; FormatDuration is for terminals and reports. Pure.

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

/// "2h", "30m", "1.5s", "250ms", "1h30m": numbers, each with one of d h m s ms us ns. No sign, no
/// blanks. Invalid otherwise, and above 292 years.
Result<std::chrono::nanoseconds> ParseDuration(std::string_view text);

/// The shortest text that reads back the same: "90m", "1500ms", "0s". Not negative.
std::string FormatExact(std::chrono::nanoseconds duration);

/// Three digits or two units: "850 ns", "12.3 ms", "4.20 s", "3m 05s", "2h 07m", "5d 03h".
std::string FormatDuration(std::chrono::nanoseconds duration);

}  // namespace muster
