#pragma once
// The units of a job file as text: durations ("90s", "30m", "2h"), sizes, cores. Each Print gives
// the shortest form that its reader takes back to the same value. Internal to src/spec; pure.

#include <optional>
#include <string>
#include <string_view>

#include "spec/job.h"

namespace muster::spec {

/// A whole or decimal number with ns, us, ms, s, m, h or d; several may follow each other
/// ("1h30m"). No sign, at most 100 years.
Result<Duration> ReadDuration(std::string_view text);
std::string PrintDuration(Duration duration);

std::string PrintSize(Bytes bytes);

/// Thousandths of a core: "2", "0.5", "500m".
std::optional<std::uint64_t> ReadCores(std::string_view text);
std::string PrintCores(std::uint64_t milli);

}  // namespace muster::spec
