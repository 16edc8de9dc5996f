#include "spec/import/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace muster::spec {
namespace {

// Wide enough for 19 digits times the largest unit; every product is checked before it is made.
__extension__ typedef unsigned __int128 Wide;  // NOLINT(modernize-use-using)

constexpr Wide kMost = Wide{1} << 120;
constexpr std::size_t kMostDigits = 19;

struct Unit {
  std::string_view name;
  int decimal = 0;  ///< power of ten
  int binary = 0;   ///< power of two
};

constexpr std::array<Unit, 14> kUnits = {{{"", 0},
                                          {"n", -9},
                                          {"u", -6},
                                          {"m", -3},
                                          {"k", 3},
                                          {"M", 6},
                                          {"G", 9},
                                          {"T", 12},
                                          {"P", 15},
                                          {"Ki", 0, 10},
                                          {"Mi", 0, 20},
                                          {"Gi", 0, 30},
                                          {"Ti", 0, 40},
                                          {"Pi", 0, 50}}};

/// "e3", "E-2".
std::optional<int> Exponent(std::string_view text) {
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(text[1] == '+' ? 2 : 1);
  int power = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, power);
  if (error != std::errc() || stop != end || power < -12 || power > 18) return std::nullopt;
  return power;
}

/// digits × 10^power × 2^binary, rounded up; nothing when it does not fit.
std::optional<Wide> Scale(Wide digits, int power, int binary) {
  for (; binary > 0; --binary) {
    if (digits > kMost / 2) return std::nullopt;
    digits *= 2;
  }
  for (; power > 0; --power) {
    if (digits > kMost / 10) return std::nullopt;
    digits *= 10;
  }
  bool rest = false;
  for (; power < 0; ++power) {
    rest = rest || digits % 10 != 0;
    digits /= 10;
  }
  return digits + (rest ? 1 : 0);
}

/// The number times 10^shift, as a whole one.
std::optional<std::uint64_t> Read(std::string_view text, int shift) {
  const auto end = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view number = text.substr(0, end);
  const std::string_view suffix = text.substr(end);
  Wide digits = 0;
  std::size_t count = 0;
  int power = shift;
  bool dot = false;
  for (const char c : number) {
    if (c == '.') {
      if (std::exchange(dot, true)) return std::nullopt;
      continue;
    }
    if (++count > kMostDigits) return std::nullopt;
    digits = digits * 10 + static_cast<unsigned>(c - '0');
    if (dot) --power;
  }
  if (count == 0) return std::nullopt;
  int binary = 0;
  const auto unit = std::ranges::find(kUnits, suffix, &Unit::name);
  if (unit != kUnits.end()) {
    power += unit->decimal;
    binary = unit->binary;
  } else if (const auto exponent = Exponent(suffix)) {
    power += *exponent;
  } else {
    return std::nullopt;
  }
  const auto scaled = Scale(digits, power, binary);
  if (!scaled || *scaled > static_cast<Wide>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  return static_cast<std::uint64_t>(*scaled);
}

}  // namespace

std::optional<std::uint64_t> ReadQuantityMilli(std::string_view text) { return Read(text, 3); }

std::optional<Bytes> ReadQuantityBytes(std::string_view text) {
  const auto bytes = Read(text, 0);
  if (!bytes) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(*bytes)};
}

}  // namespace muster::spec
