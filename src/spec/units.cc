#include "spec/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace muster::spec {
namespace {

struct TimeUnit {
  std::string_view name;
  std::int64_t nanoseconds;
};
constexpr std::array<TimeUnit, 7> kTimeUnits{{{"d", 86'400'000'000'000},
                                              {"h", 3'600'000'000'000},
                                              {"m", 60'000'000'000},
                                              {"s", 1'000'000'000},
                                              {"ms", 1'000'000},
                                              {"us", 1'000},
                                              {"ns", 1}}};
constexpr double kLongestNanoseconds = 100 * 365.25 * 86'400e9;
constexpr std::uint64_t kMostCores = 1'000'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Result<Duration> ReadDuration(std::string_view text) {
  const Error invalid(Code::kInvalid, fmt::format("'{}' is not a duration", text),
                      "write it like 90s, 30m or 2h");
  double total = 0;
  if (text.empty()) return invalid;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (!IsDigit(text.front()) || error != std::errc()) return invalid;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    std::size_t length = 0;
    while (length < text.size() && text[length] >= 'a' && text[length] <= 'z') ++length;
    const TimeUnit* found = nullptr;
    for (const TimeUnit& unit : kTimeUnits) {
      if (unit.name == text.substr(0, length)) found = &unit;
    }
    if (found == nullptr) return invalid;
    total += number * static_cast<double>(found->nanoseconds);
    if (total > kLongestNanoseconds) return invalid;
    text.remove_prefix(length);
  }
  return Duration(std::llround(total));
}

std::string PrintDuration(Duration duration) {
  if (duration.count() == 0) return "0s";
  for (const TimeUnit& unit : kTimeUnits) {
    if (duration.count() % unit.nanoseconds == 0) {
      return fmt::format("{}{}", duration.count() / unit.nanoseconds, unit.name);
    }
  }
  return fmt::format("{}ns", duration.count());
}

std::string PrintSize(Bytes bytes) {
  constexpr std::array<std::string_view, 6> kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::int64_t count = bytes.count;
  std::size_t unit = 0;
  while (count != 0 && count % 1024 == 0 && unit + 1 < kNames.size()) {
    count /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", count, kNames[unit]);
}

std::optional<std::uint64_t> ReadCores(std::string_view text) {
  const bool milli = text.ends_with('m');
  if (milli) text.remove_suffix(1);
  if (text.empty() || !IsDigit(text.front())) return std::nullopt;
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const double scaled = milli ? number : number * 1000;
  if (scaled > static_cast<double>(kMostCores) * 1000) return std::nullopt;
  const double whole = std::round(scaled);
  if (std::abs(scaled - whole) > 1e-6) return std::nullopt;
  return static_cast<std::uint64_t>(whole);
}

std::string PrintCores(std::uint64_t milli) {
  return milli % 1000 == 0 ? fmt::format("{}", milli / 1000) : fmt::format("{}m", milli);
}

}  // namespace muster::spec
