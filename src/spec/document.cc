#include "spec/document.h"

#include <fmt/format.h>

#include <algorithm>

#include "spec/document_readers.h"

namespace muster::spec {
namespace {

/// The length of the well-formed UTF-8 character that `text` begins with, 0 when there is none (RFC
/// 3629).
std::size_t CharacterLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool beyond = lead == 0xF4 && second > 0x8F;
  return overlong || surrogate || beyond ? 0 : length;
}

/// Refuses what neither format may hold; both libraries are lax here.
Status CheckText(std::string_view text, std::string_view file) {
  Place place{1, 1};
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = CharacterLength(text.substr(i));
    if (length == 0) {
      return Error(Code::kInvalid,
                   AtPlace(file, place, fmt::format("byte 0x{:02x} is not UTF-8", c)));
    }
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) {
      return Error(Code::kInvalid,
                   AtPlace(file, place, fmt::format("control character 0x{:02x}", c)));
    }
    place = c == '\n' ? Place{place.line + 1, 1}
                      : Place{place.line, place.column + static_cast<std::uint32_t>(length)};
    i += length;
  }
  return Ok();
}

}  // namespace

std::string AtPlace(std::string_view file, Place place, std::string_view message) {
  if (place.line == 0) return fmt::format("{}: {}", file, message);
  return fmt::format("{}:{}:{}: {}", file, place.line, place.column, message);
}

Result<Value> ReadDocument(std::string_view text, Syntax syntax, std::string_view file,
                           const DocumentLimits& limits) {
  if (static_cast<std::int64_t>(text.size()) > limits.bytes.count) {
    return Error(Code::kInvalid,
                 fmt::format("{}: {} bytes, more than the {} that a job file may have", file,
                             text.size(), FormatBytes(limits.bytes)));
  }
  MUSTER_TRY(CheckText(text, file));
  return syntax == Syntax::kJson ? ReadJson(text, file, limits) : ReadYaml(text, file, limits);
}

}  // namespace muster::spec
