#pragma once
// The CRC-32C of each block of a rank's file.

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace muster::checkpoint {

/// Data is checked, and therefore read, in blocks of this size.
inline constexpr std::uint64_t kBlockBytes = 4u << 20;

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
