#include "spec/document.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "spec/document_readers.h"

namespace muster::spec {
namespace {

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
