#include "base/duration.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>

#include "base/decimal.h"

namespace muster {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};
constexpr std::array<Unit, 7> kUnits{{{"d", 86'400'000'000'000},
                                      {"h", 3'600'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"s", 1'000'000'000},
                                      {"ms", 1'000'000},
                                      {"us", 1'000},
                                      {"ns", 1}}};

const Unit* FindUnit(std::string_view name) {
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

/// `value` in three digits: 4.20, 42.0, 420.
std::string ThreeDigits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

}  // namespace

Result<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  const Error invalid(Code::kInvalid, fmt::format("'{}' is not a duration", text),
                      "write it like 90s, 1.5h or 250ms");
  if (text.empty()) return invalid;
  std::int64_t total = 0;
  while (!text.empty()) {
    const std::string_view rest = text.substr(NumberLength(text));
    std::size_t length = 0;
    while (length < rest.size() && rest[length] >= 'a' && rest[length] <= 'z') ++length;
    const Unit* unit = FindUnit(rest.substr(0, length));
    if (unit == nullptr) return invalid;
    const auto part = TakeScaled(text, unit->nanoseconds);
    if (!part || *part > std::numeric_limits<std::int64_t>::max() - total) return invalid;
    total += *part;
    text.remove_prefix(length);
  }
  return std::chrono::nanoseconds(total);
}

std::string FormatExact(std::chrono::nanoseconds duration) {
  MUSTER_CHECK(duration.count() >= 0);
  if (duration.count() == 0) return "0s";
  const Unit* best = &kUnits.back();
  for (const Unit& unit : kUnits) {
    if (duration.count() % unit.nanoseconds != 0) continue;
    best = &unit;
    break;
  }
  return fmt::format("{}{}", duration.count() / best->nanoseconds, best->name);
}

std::string FormatDuration(std::chrono::nanoseconds duration) {
  const std::int64_t n = duration.count();
  if (n < 0) return "-" + FormatDuration(std::chrono::nanoseconds(n == INT64_MIN ? INT64_MAX : -n));
  const auto value = static_cast<double>(n);
  if (n < 1'000) return fmt::format("{} ns", n);
  if (value < 999.5e3) return ThreeDigits(value / 1e3) + " us";
  if (value < 999.5e6) return ThreeDigits(value / 1e6) + " ms";
  if (value < 59.95e9) return ThreeDigits(value / 1e9) + " s";
  const std::int64_t seconds = n / 1'000'000'000 + (n % 1'000'000'000 >= 500'000'000 ? 1 : 0);
  if (seconds < 3600) return fmt::format("{}m {:02}s", seconds / 60, seconds % 60);
  const std::int64_t minutes = (seconds + 30) / 60;
  constexpr std::int64_t kDay = std::int64_t{24} * 60;
  if (minutes < kDay) return fmt::format("{}h {:02}m", minutes / 60, minutes % 60);
  const std::int64_t hours = (minutes + 30) / 60;
  return fmt::format("{}d {:02}h", hours / 24, hours % 24);
}

}  // namespace muster
