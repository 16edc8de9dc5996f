#pragma once
// `_muster/manifest`: what the shards of one split hold and the checksums to hold them against, in
// one small binary file, so that opening a set reads no rows (docs/formats/dataset.md has the
// bytes). Values; encode and decode are pure. Decoding bounds every count by the bytes that are
// there, then checks the file's own CRC32C, names, sums and that frames are in order inside the
// shard.

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "data/arrow/decode.h"
#include "data/dataset_id.h"
#include "data/layout/checksum.h"

namespace muster::data {

inline constexpr std::uint64_t kPartBytes = 8u << 20;

struct BatchEntry {
  arrow::BatchFrame frame;
  /// CRC32C of the message (prefix, metadata, body) without the bytes of the main column's value
  /// buffer: what a row's meaning depends on beside its own bytes.
  std::uint32_t frame_crc = 0;
  std::uint32_t index_crc = 0;  ///< CRC32C of the batch's entries in the row index
};

struct ShardEntry {
  std::string name;  ///< in the split's folder, without a slash
  std::uint64_t bytes = 0;
  std::uint64_t rows = 0;
  Digest digest{};                       ///< XXH3-128 of the file
  std::vector<std::uint32_t> part_crcs;  ///< CRC32C of each kPartBytes, the last one shorter
  std::vector<BatchEntry> batches;
};

struct Manifest {
  std::string main_column;  ///< "image.bytes": whose rows the row index describes
  std::vector<ShardEntry> shards;

  /// The root digest over the shards' digests.
  DatasetId Id() const;
};

std::vector<std::byte> EncodeManifest(const Manifest& manifest);
/// DataLoss when damaged, Precondition for a later version.
Result<Manifest> DecodeManifest(ByteSpan bytes);

/// A name that stays inside its folder: not empty, no slash, not "." or "..", at most 255 bytes.
bool IsPlainName(std::string_view name);

}  // namespace muster::data
