#pragma once
// What a whole shard gets as its name in a dataset: XXH3-128. The sums of the small pieces that a
// reader checks are CRC-32C (base/crc32c.h). A StreamDigest has one owner.

#include <array>
#include <cstdint>
#include <memory>

#include "base/bytes.h"

namespace muster::data {

using Digest = std::array<std::uint8_t, 16>;

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
