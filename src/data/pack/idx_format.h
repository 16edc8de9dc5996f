#pragma once
// The idx format of the MNIST family: a big-endian magic 0x000008NN (08: unsigned bytes, NN: number
// of dimensions), NN big-endian sizes, then the bytes. Source: yann.lecun.com/exdb/mnist. Pure.

#include <array>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace muster::data {

struct IdxHeader {
  std::vector<std::uint32_t> sizes;  ///< the first one counts the items
  /// Bytes of one item.
  std::uint64_t item_bytes() const;
};

/// Bytes of a header with so many dimensions.
constexpr std::size_t IdxHeaderBytes(std::uint32_t dimensions) { return 4 + 4 * dimensions; }

/// Reads a header that must have `dimensions` dimensions (3 for images, 1 for labels). DataLoss
/// with the magic that was found, when it is another one or the header is cut.
Result<IdxHeader> ParseIdxHeader(ByteSpan bytes, std::uint32_t dimensions);

}  // namespace muster::data
