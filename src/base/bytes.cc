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
constexpr std::array<Unit, 6> kBinary{{{"B", 1},
                                       {"KiB", std::int64_t{1} << 10},
                                       {"MiB", std::int64_t{1} << 20},
                                       {"GiB", std::int64_t{1} << 30},
                                       {"TiB", std::int64_t{1} << 40},
                                       {"PiB", std::int64_t{1} << 50}}};
/// Read, never printed.
constexpr std::array<Unit, 5> kOthers{
    {{"", 1}, {"KB", 1'000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}, {"TB", 1'000'000'000'000}}};

/// 0 when it is none.
std::int64_t FactorOf(std::string_view unit) {
  const auto named = [&](const Unit& known) { return known.name == unit; };
  if (const auto* found = std::ranges::find_if(kBinary, named); found != kBinary.end())
    return found->factor;
  const auto* found = std::ranges::find_if(kOthers, named);
  return found != kOthers.end() ? found->factor : 0;
}

}  // namespace

Result<Bytes> ParseBytes(std::string_view text) {
  std::string_view unit = text.substr(NumberLength(text));
  // Blanks stand before a unit only, so "1 " is left with a blank that is no unit.
  if (const auto name = unit.find_first_not_of(' '); name != std::string_view::npos)
    unit.remove_prefix(name);
  if (const std::int64_t factor = FactorOf(unit); factor != 0) {
    std::string_view number = text;
    if (const auto value = TakeScaled(number, factor)) return Bytes{*value};
  }
  return Error(Code::kInvalid, fmt::format("'{}' is not a size", text),
               "write it like 4GiB, 500 MB or 65536");
}

std::string FormatBytes(Bytes bytes) {
  auto value = static_cast<double>(bytes.count);
  std::size_t unit = 0;
  // Whole bytes are not rounded; 999.5 of anything else would read 1000.
  while (std::abs(value) >= (unit == 0 ? 1000 : 999.5) && unit + 1 < kBinary.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes.count);
  // The thresholds are where rounding would add a digit.
  const int digits = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, kBinary[unit].name);
}

std::string FormatExact(Bytes bytes) {
  std::size_t unit = 0;
  while (bytes.count != 0 && unit + 1 < kBinary.size() &&
         bytes.count % kBinary[unit + 1].factor == 0)
    ++unit;
  return fmt::format("{}{}", bytes.count / kBinary[unit].factor, kBinary[unit].name);
}

}  // namespace muster
