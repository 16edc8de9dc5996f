#pragma once
// Sizes and cores of a job file as text. Each Print gives the shortest form that its reader takes
// back to the same value; durations have theirs in base/duration.h. Internal to src/spec; pure.

#include <optional>
#include <string>
#include <string_view>

#include "spec/job.h"

namespace muster::spec {

std::string PrintSize(Bytes bytes);

/// Thousandths of a core: "2", "0.5", "500m".
std::optional<std::uint64_t> ReadCores(std::string_view text);
std::string PrintCores(std::uint64_t milli);

}  // namespace muster::spec
