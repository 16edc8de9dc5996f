#include "agent/health/kmsg_record.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace muster::agent::health {
namespace {

/// The number in front of a comma or semicolon, which are taken too.
std::optional<std::uint64_t> Number(std::string_view& head) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(head.data(), head.data() + head.size(), number);
  if (error != std::errc() || stop == head.data()) return std::nullopt;
  head.remove_prefix(static_cast<std::size_t>(stop - head.data()));
  if (head.empty() || head[0] != ',') return std::nullopt;
  head.remove_prefix(1);
  return number;
}

int Digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && text[i + 1] == 'x' && Digit(text[i + 2]) >= 0 &&
        Digit(text[i + 3]) >= 0) {
      out += static_cast<char>(Digit(text[i + 2]) * 16 + Digit(text[i + 3]));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::optional<KmsgRecord> ParseKmsg(std::string_view record) {
  if (record.size() > kMostKmsgRecord) return std::nullopt;
  const auto semicolon = record.find(';');
  if (semicolon == std::string_view::npos) return std::nullopt;
  std::string_view head = record.substr(0, semicolon);
  std::string_view body = record.substr(semicolon + 1);
  const auto priority = Number(head);
  const auto sequence = priority ? Number(head) : std::nullopt;
  const auto time = sequence ? Number(head) : std::nullopt;
  constexpr auto kLatest =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / 1000);
  // Nanoseconds since boot are what times are compared in.
  if (!time || head.empty() || *priority > 0xFFFF || *time > kLatest) return std::nullopt;
  KmsgRecord out{.level = static_cast<unsigned>(*priority & 7),
                 .facility = static_cast<unsigned>(*priority >> 3),
                 .sequence = *sequence,
                 .time = std::chrono::microseconds(static_cast<std::int64_t>(*time)),
                 .fragment = head[0] == 'c' || head[0] == '+',
                 .text = {},
                 .device = {}};
  const auto end = std::min(body.find('\n'), body.size());
  out.text = Unescaped(body.substr(0, end));
  body.remove_prefix(std::min(end + 1, body.size()));
  constexpr std::string_view kDevice = " DEVICE=";
  while (!body.empty()) {
    const auto stop = std::min(body.find('\n'), body.size());
    const std::string_view line = body.substr(0, stop);
    if (line.starts_with(kDevice)) out.device = Unescaped(line.substr(kDevice.size()));
    body.remove_prefix(std::min(stop + 1, body.size()));
  }
  return out;
}

}  // namespace muster::agent::health
