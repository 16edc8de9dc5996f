#pragma once
// CRC-32C (Castagnoli, RFC 3720 B.4) of blocks, by isa-l.

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace muster::checkpoint {

/// Data is checked, and therefore read, in blocks of this size.
inline constexpr std::uint64_t kBlockBytes = 4u << 20;

/// `before` is the sum of what came earlier, to go on from there.
std::uint32_t Crc32c(ByteSpan data, std::uint32_t before = 0);

constexpr std::uint64_t BlocksOf(std::uint64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes;
}

/// The sums of consecutive blocks of a stream that arrives in pieces.
class BlockSums {
 public:
  void Add(ByteSpan data);
  std::vector<std::uint32_t> Finish();

 private:
  std::vector<std::uint32_t> sums_;
  std::uint32_t sum_ = 0;
  std::uint64_t filled_ = 0;
};

}  // namespace muster::checkpoint
