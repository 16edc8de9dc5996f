#include "spec/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace muster::spec {
namespace {

constexpr std::uint64_t kMostCores = 1'000'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

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
