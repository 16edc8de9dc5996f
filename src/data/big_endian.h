#pragma once
// Big-endian numbers in other people's formats: PNG, JPEG, idx. Our own are little-endian
// (layout/little_endian.h). Pure.

#include <concepts>

#include "base/bytes.h"

namespace muster::data {

/// The number at `at`; all of it must lie in `bytes`.
template <std::unsigned_integral T>
T LoadBig(ByteSpan bytes, std::size_t at) {
  T value = 0;
  for (const std::byte byte : bytes.subspan(at, sizeof(T))) {
    value = static_cast<T>(value << 8 | std::to_integer<T>(byte));
  }
  return value;
}

}  // namespace muster::data
