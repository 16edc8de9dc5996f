#include "train/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "train/checkpoint/parse_json.h"

static_assert(std::endian::native == std::endian::little, "files are little-endian");

namespace muster::checkpoint {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
constexpr std::size_t kMostDimensions = 16;
constexpr std::size_t kNameLimit = 4096;
constexpr const char* kMetadata = "__metadata__";

Result<std::vector<std::uint64_t>> ParseShape(const nlohmann::json& array, std::string_view name) {
  if (array.size() > kMostDimensions)
    return Error(Code::kDataLoss, std::string(name) + " has too many dimensions");
  std::vector<std::uint64_t> shape;
  for (const auto& extent : array) {
    if (!extent.is_number_unsigned())
      return Error(Code::kDataLoss, std::string(name) + " has a shape that is no list of sizes");
    shape.push_back(extent.get<std::uint64_t>());
  }
  return shape;
}

Result<SafetensorsEntry> ParseEntry(const std::string& name, const nlohmann::json& value) {
  const std::string where = "tensor '" + name.substr(0, 200) + "'";
  if (name.size() > kNameLimit || !value.is_object())
    return Error(Code::kDataLoss, where + " is not described by an object");
  SafetensorsEntry entry{.name = name};
  const auto dtype = ParseDType(MUSTER_TRY(Text(value, "dtype", 16, where)));
  if (!dtype) return Error(Code::kDataLoss, where + ": " + dtype.error().message());
  entry.dtype = *dtype;
  entry.shape = MUSTER_TRY(ParseShape(*MUSTER_TRY(Member(value, "shape", "array", where)), where));
  const nlohmann::json& offsets = *MUSTER_TRY(Member(value, "data_offsets", "array", where));
  if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    return Error(Code::kDataLoss, where + ": data_offsets are not two positions");
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  const auto elements = ElementsOf(entry.shape);
  if (!elements || entry.end < entry.begin ||
      entry.end - entry.begin != *elements * SizeOf(entry.dtype))
    return Error(Code::kDataLoss, where + ": data_offsets do not fit its dtype and shape");
  return entry;
}

Status ParseMetadata(const nlohmann::json& value, std::map<std::string, std::string>& metadata) {
  if (!value.is_object()) return Error(Code::kDataLoss, "__metadata__ is not an object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string())
      return Error(Code::kDataLoss, "__metadata__ holds something that is not a string");
    metadata[key] = text.get<std::string>();
  }
  return Ok();
}

Status CheckFilled(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes) {
  std::uint64_t at = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != at)
      return Error(Code::kDataLoss, "tensor '" + entry.name.substr(0, 200) + "' begins at byte " +
                                        std::to_string(entry.begin) + " where " +
                                        std::to_string(at) + " was expected");
    at = entry.end;
  }
  if (at != data_bytes)
    return Error(Code::kDataLoss, "the tensors need " + std::to_string(at) +
                                      " bytes of data, the file holds " +
                                      std::to_string(data_bytes));
  return Ok();
}

}  // namespace

Result<std::uint64_t> ElementsOf(const std::vector<std::uint64_t>& shape) {
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : shape) {
    // 8 bytes an element still fit; a zero extent must not hide an absurd one behind it.
    if (extent > kMost / 8 / std::max<std::uint64_t>(elements, 1))
      return Error(Code::kInvalid, "the shape is too large");
    elements *= extent;
  }
  return elements;
}

Result<std::string> BuildSafetensors(const std::vector<SafetensorsEntry>& entries,
                                     const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  for (const SafetensorsEntry& entry : entries) {
    header[entry.name] = {{"dtype", NameOf(entry.dtype)},
                          {"shape", entry.shape},
                          {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string json;
  try {
    json = header.dump();
  } catch (const nlohmann::json::exception&) {
    return Error(Code::kInvalid, "a tensor's name is not UTF-8");
  }
  json.append((64 - (8 + json.size()) % 64) % 64, ' ');
  const std::uint64_t length = json.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + json;
}

Result<SafetensorsHeader> ParseSafetensors(std::string_view json, std::uint64_t data_bytes) {
  const nlohmann::json parsed =
      MUSTER_TRY(ParseJsonObject(json, {.bytes = kSafetensorsHeaderLimit, .depth = 8}));
  SafetensorsHeader header{.header_bytes = 8 + json.size()};
  for (const auto& [name, value] : parsed.items()) {
    if (name == kMetadata) {
      MUSTER_TRY(ParseMetadata(value, header.metadata));
    } else {
      header.entries.push_back(MUSTER_TRY(ParseEntry(name, value)));
    }
  }
  std::ranges::sort(header.entries, {}, [](const SafetensorsEntry& entry) {
    return std::pair(entry.begin, entry.end);
  });
  MUSTER_TRY(CheckFilled(header.entries, data_bytes));
  return header;
}

Result<SafetensorsHeader> ReadSafetensors(const ReadableFile& file, std::string& raw) {
  std::uint64_t length = 0;
  if (file.size() < 8) return Error(Code::kDataLoss, file.path() + " is too short for a header");
  MUSTER_TRY(file.ReadAt(0, std::as_writable_bytes(std::span(&length, 1))));
  if (length > kSafetensorsHeaderLimit || length > file.size() - 8)
    return Error(Code::kDataLoss, file.path() + " announces a header of " + std::to_string(length) +
                                      " bytes in a file of " + std::to_string(file.size()));
  raw.resize(8 + length);
  MUSTER_TRY(file.ReadAt(0, std::as_writable_bytes(std::span(raw))));
  return Within(file.path(),
                ParseSafetensors(std::string_view(raw).substr(8), file.size() - raw.size()));
}

}  // namespace muster::checkpoint
