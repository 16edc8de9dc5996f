#include "data/dataset_id.h"

#include <charconv>

namespace muster::data {

std::string DatasetId::Hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Result<DatasetId> DatasetId::Parse(std::string_view hex) {
  DatasetId id;
  const Error invalid(Code::kInvalid,
                      "'" + std::string(hex.substr(0, 64)) + "' is not a dataset id",
                      "it is 32 hexadecimal digits");
  if (hex.size() != 2 * id.bytes.size()) return invalid;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    const char* at = hex.data() + 2 * i;
    const auto [end, error] = std::from_chars(at, at + 2, id.bytes[i], 16);
    if (error != std::errc() || end != at + 2) return invalid;
  }
  return id;
}

}  // namespace muster::data
