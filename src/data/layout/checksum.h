#pragma once
// The two checksums of the dataset format: CRC32C (Castagnoli, isa-l) where a reader checks small
// pieces, XXH3-128 where a whole shard gets a name. Pure; a StreamDigest has one owner.

#include <array>
#include <cstdint>
#include <memory>

#include "base/bytes.h"

namespace muster::data {

using Digest = std::array<std::uint8_t, 16>;

/// CRC32C of `before` followed by `data`, given the CRC of `before` (0: nothing).
std::uint32_t Crc32c(ByteSpan data, std::uint32_t before = 0);

/// XXH3-128 of what was added, in canonical (big-endian) order.
class StreamDigest {
 public:
  StreamDigest();
  StreamDigest(StreamDigest&&) noexcept;
  StreamDigest& operator=(StreamDigest&&) noexcept;
  ~StreamDigest();
  void Add(ByteSpan data);
  Digest Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::data
