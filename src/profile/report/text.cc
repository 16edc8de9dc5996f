#include "profile/report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster::profile {
std::string EscapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string PlainHtml(std::string_view text, std::size_t most) {
  const std::string plain = PlainText(CutText(text, most));
  std::string out;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const bool begins_character = (static_cast<unsigned char>(plain[i]) & 0xC0) != 0x80;
    if (begins_character && out.size() >= most) return out + "…";
    out += EscapeHtml(std::string_view(plain).substr(i, 1));
  }
  return out;
}

std::string FormatSeconds(double seconds) {
  if (!std::isfinite(seconds)) return "–";
  if (seconds < 0) return "−" + FormatSeconds(-seconds);
  if (seconds < 0.0995) return fmt::format("{:.3g} ms", seconds * 1000);
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86'400) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {} h", whole / 86'400, whole % 86'400 / 3600);
}

std::string GoodputInWords(double goodput, bool struck_early) {
  return fmt::format("goodput {:.1f} %{}", goodput * 100,
                     struck_early ? " from the first step on" : "");
}

std::string FormatNumber(double value) {
  if (!std::isfinite(value)) return "–";
  return fmt::format("{:.4g}", value);
}

std::string Ranges(std::vector<std::uint64_t> numbers, std::size_t most) {
  std::ranges::sort(numbers);
  std::string out;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] <= numbers[last] + 1) ++last;
    if (++ranges > most) return out + ", …";
    out += fmt::format("{}{}", out.empty() ? "" : ", ", numbers[i]);
    if (numbers[last] > numbers[i]) {
      out += fmt::format("{}{}", numbers[last] == numbers[i] + 1 ? ", " : "–", numbers[last]);
    }
    i = last + 1;
  }
  return out;
}

}  // namespace muster::profile
