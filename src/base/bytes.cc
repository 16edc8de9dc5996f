#include "base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace muster {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array<Unit, 11> kUnits{{{"", 1},
                                       {"B", 1},
                                       {"KB", 1e3},
                                       {"MB", 1e6},
                                       {"GB", 1e9},
                                       {"TB", 1e12},
                                       {"KiB", 1024.},
                                       {"MiB", 1048576.},
                                       {"GiB", 1073741824.},
                                       {"TiB", 1099511627776.},
                                       {"PiB", 1125899906842624.}}};

}  // namespace

Result<Bytes> ParseBytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const Error invalid(Code::kInvalid, fmt::format("'{}' is not a size", text),
                      "write it like 4GiB, 500 MB or 65536");
  if (error != std::errc() || !std::isfinite(number) || number < 0) return invalid;
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    const double value = std::round(number * known.factor);
    if (value >= 9.2e18) return invalid;
    return Bytes{static_cast<std::int64_t>(value)};
  }
  return invalid;
}

std::string FormatBytes(Bytes bytes) {
  constexpr std::array<std::string_view, 6> kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes.count);
  std::size_t unit = 0;
  while (std::abs(value) >= 1000 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes.count);
  const int digits = std::abs(value) < 10 ? 2 : std::abs(value) < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, kNames[unit]);
}

}  // namespace muster
