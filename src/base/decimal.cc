#include "base/decimal.h"

#include <limits>

namespace muster {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::size_t kMaxDigits = 19;  // 10^19 fits into 64 bits
constexpr std::size_t kMaxFraction = 18;
constexpr auto kLimit = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::size_t CountDigits(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && IsDigit(text[count])) ++count;
  return count;
}

}  // namespace

std::size_t NumberLength(std::string_view text) {
  const std::size_t whole = CountDigits(text);
  if (whole == 0 || whole == text.size() || text[whole] != '.') return whole;
  const std::size_t fraction = CountDigits(text.substr(whole + 1));
  return fraction == 0 ? whole : whole + 1 + fraction;
}

std::optional<std::int64_t> TakeScaled(std::string_view& text, std::int64_t unit) {
  const std::size_t length = NumberLength(text);
  const std::string_view number = text.substr(0, length);
  const std::size_t whole = CountDigits(number);
  const std::size_t fraction = length > whole ? length - whole - 1 : 0;
  if (whole == 0 || whole > kMaxDigits || fraction > kMaxFraction || unit <= 0) return std::nullopt;

  Wide integer = 0;
  for (const char c : number.substr(0, whole)) integer = integer * 10 + static_cast<Wide>(c - '0');
  Wide numerator = 0;
  Wide denominator = 1;
  for (const char c : number.substr(length - fraction)) {
    numerator = numerator * 10 + static_cast<Wide>(c - '0');
    denominator *= 10;
  }
  // 10^19 × 2^63 is below 2^127, and so is each term that follows.
  const auto scale = static_cast<Wide>(unit);
  const Wide value = integer * scale + (numerator * scale + denominator / 2) / denominator;
  if (value > kLimit) return std::nullopt;
  text.remove_prefix(length);
  return static_cast<std::int64_t>(value);
}

}  // namespace muster
