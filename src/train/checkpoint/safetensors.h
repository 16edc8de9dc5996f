#pragma once
// The safetensors format (https://github.com/huggingface/safetensors): 8 bytes little-endian length
// of a JSON header, the header, then the data. Our files pad the header with spaces so that data
// starts on 64 bytes. ParseSafetensors takes hostile headers: size and depth limits, offsets that
// match dtype and shape, no overlap, no hole.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/readable_file.h"
#include "base/result.h"
#include "train/checkpoint/dtype.h"

namespace muster::checkpoint {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  ///< bytes in the data part
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::uint64_t header_bytes = 0;         ///< with the 8 bytes of the length; data starts there
  std::vector<SafetensorsEntry> entries;  ///< in order of `begin`
  std::map<std::string, std::string> metadata;
  std::uint64_t data_bytes() const { return entries.empty() ? 0 : entries.back().end; }
};

inline constexpr std::uint64_t kSafetensorsHeaderLimit = 64u << 20;

/// The product of a shape, or nothing when it does not fit into 62 bits.
Result<std::uint64_t> ElementsOf(const std::vector<std::uint64_t>& shape);

/// The bytes that go before the data; the entries lie in the given order. Invalid when a name is
/// not UTF-8.
Result<std::string> BuildSafetensors(const std::vector<SafetensorsEntry>& entries,
                                     const std::map<std::string, std::string>& metadata);

/// `json` is the header without its length. DataLoss when malformed or when the entries do not fill
/// exactly `data_bytes`.
Result<SafetensorsHeader> ParseSafetensors(std::string_view json, std::uint64_t data_bytes);

/// Reads and parses the header of a file; `raw` gets its bytes with the length, for a checksum.
Result<SafetensorsHeader> ReadSafetensors(const ReadableFile& file, std::string& raw);

}  // namespace muster::checkpoint
