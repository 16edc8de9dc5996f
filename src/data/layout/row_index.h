#pragma once
// `_muster/SHARD.idx`: for each row of a shard where the main column's value lies in its batch's
// body, how long it is and its CRC32C. 32 bytes of header, then 12 bytes a row, little-endian,
// mapped and read lazily; the manifest has a CRC of each batch's entries (docs/formats/dataset.md).
// Values; pure.

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace muster::data {

struct RowEntry {
  std::uint32_t offset = 0;  ///< from the start of the batch's body
  std::uint32_t length = 0;
  std::uint32_t crc = 0;
  bool operator==(const RowEntry&) const = default;
};

inline constexpr std::size_t kRowIndexHeader = 32;
inline constexpr std::size_t kRowEntryBytes = 12;

std::vector<std::byte> EncodeRowIndexHeader(std::uint64_t rows);
void AppendRowEntry(std::vector<std::byte>& out, const RowEntry& entry);

/// The entries of an index file, after its magic, version and size are checked against `rows`.
Result<ByteSpan> RowEntries(ByteSpan file, std::uint64_t rows);
RowEntry LoadRowEntry(ByteSpan entries, std::uint64_t row);

}  // namespace muster::data
