#pragma once
// CRC-32C (Castagnoli; RFC 3720, B.4), by isa-l: the sum of small pieces in datasets and
// checkpoints. A library of its own, `crc32c`, so that isa-l reaches only who sums. Pure.

#include <cstdint>

#include "base/bytes.h"

namespace muster {

/// The sum of `before`'s bytes followed by `data`, given the sum of those (0: nothing).
std::uint32_t Crc32c(ByteSpan data, std::uint32_t before = 0);

}  // namespace muster
