#pragma once
// Cores of a job file as text. PrintCores gives the shortest form that ReadCores takes back to the
// same value; sizes have theirs in base/bytes.h, durations in base/duration.h. Internal to
// src/spec; pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::spec {

/// Thousandths of a core: "2", "0.5", "500m".
std::optional<std::uint64_t> ReadCores(std::string_view text);
std::string PrintCores(std::uint64_t milli);

}  // namespace muster::spec
