// Any bytes as the header of an idx file, of images and of labels.
#include <cstdint>

#include "data/pack/idx_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace muster;
  const ByteSpan file(reinterpret_cast<const std::byte*>(bytes), size);
  for (const std::uint32_t dimensions : {1u, 3u}) {
    const auto header = data::ParseIdxHeader(file, dimensions);
    if (header && header->item_bytes() > (1u << 28)) __builtin_trap();
  }
  return 0;
}
