#include "base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace muster {

std::uint32_t Crc32c(ByteSpan data, std::uint32_t before) {
  constexpr std::size_t kMost = 1u << 30;  // isa-l takes an int
  std::uint32_t sum = ~before;
  while (!data.empty()) {
    const ByteSpan part = data.first(std::min(data.size(), kMost));
    // isa-l's prototype lacks the const; it only reads.
    auto* bytes = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(part.data()));
    sum = ::crc32_iscsi(bytes, static_cast<int>(part.size()), sum);
    data = data.subspan(part.size());
  }
  return ~sum;
}

}  // namespace muster
