#include "base/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/decimal.h"

namespace muster {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};
constexpr std::array<Unit, 11> kUnits{{{"", 1},
                                       {"B", 1},
                                       {"KB", 1'000},
                                       {"MB", 1'000'000},
                                       {"GB", 1'000'000'000},
                                       {"TB", 1'000'000'000'000},
                                       {"KiB", std::int64_t{1} << 10},
                                       {"MiB", std::int64_t{1} << 20},
                                       {"GiB", std::int64_t{1} << 30},
                                       {"TiB", std::int64_t{1} << 40},
                                       {"PiB", std::int64_t{1} << 50}}};

}  // namespace

Result<Bytes> ParseBytes(std::string_view text) {
  std::string_view unit = text.substr(NumberLength(text));
  // Blanks stand before a unit only, so "1 " is left with a blank that is no unit.
  if (const auto name = unit.find_first_not_of(' '); name != std::string_view::npos)
    unit.remove_prefix(name);
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    std::string_view number = text;
    if (const auto value = TakeScaled(number, known.factor)) return Bytes{*value};
    break;
  }
  return Error(Code::kInvalid, fmt::format("'{}' is not a size", text),
               "write it like 4GiB, 500 MB or 65536");
}

std::string FormatBytes(Bytes bytes) {
  constexpr std::array<std::string_view, 6> kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes.count);
  std::size_t unit = 0;
  // Whole bytes are not rounded; 999.5 of anything else would read 1000.
  while (std::abs(value) >= (unit == 0 ? 1000 : 999.5) && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes.count);
  // The thresholds are where rounding would add a digit.
  const int digits = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, kNames[unit]);
}

}  // namespace muster
