#include "profile/report/text.h"

#include <fmt/format.h>

#include <cmath>

namespace muster::profile {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// The length of the well-formed character at the start, 0 when there is none (RFC 3629).
std::size_t CharacterLength(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = at(1);
  const bool wrong = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                     (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return wrong ? 0 : length;
}

/// The length of an ANSI sequence (CSI, OSC or two bytes) at the start, 0 when there is none.
std::size_t SequenceLength(std::string_view text) {
  if (text.size() < 2 || text[0] != '\x1b') return 0;
  std::size_t i = 2;
  if (text[1] == '[') {
    while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x40) ++i;
    return i < text.size() ? i + 1 : i;
  }
  if (text[1] != ']') return 2;
  while (i < text.size() && text[i] != '\a' && text[i] != '\x1b' && text[i] != '\n') ++i;
  if (i < text.size() && text[i] == '\a') return i + 1;
  return i + 1 < text.size() && text[i] == '\x1b' && text[i + 1] == '\\' ? i + 2 : i;
}

}  // namespace

std::string CutText(std::string_view text, std::size_t most) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    const std::string_view next = length == 0 ? kReplacement : text.substr(0, length);
    if (out.size() + next.size() > most) return out + "…";
    out += next;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string PlainText(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    if (const std::size_t sequence = SequenceLength(text); sequence != 0) {
      text.remove_prefix(sequence);
      continue;
    }
    std::size_t length = CharacterLength(text);
    if (c == '\r') {
      const bool ends_line = text.size() > 1 && text[1] == '\n';
      if (!ends_line) out.resize(out.rfind('\n') + 1);  // npos + 1 is 0
    } else if (length == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F) {
      out += kReplacement;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

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
