#include "profile/report/text.h"

#include <fmt/format.h>

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

std::string GroupThousands(std::string_view digits) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool behind_digit = i > 0 && digits[i - 1] != '-';
    if (behind_digit && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string FormatCount(std::uint64_t count) { return GroupThousands(std::to_string(count)); }

std::string FormatNumber(double value) {
  if (!std::isfinite(value)) return "–";
  return fmt::format("{:.4g}", value);
}

std::string Plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", FormatCount(count), noun, count == 1 ? "" : "s");
}

}  // namespace muster::profile
