// Any bytes as an image: what passes the header check is decoded to grey and to colour, small
// images only.
#include <cstdint>
#include <vector>

#include "data/decode/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace muster;
  constexpr std::uint64_t kMostPixels = 1 << 16;
  const ByteSpan file(reinterpret_cast<const std::byte*>(bytes), size);
  const auto header = data::ReadImageHeader(file, kMostPixels);
  if (!header) return 0;
  for (const std::uint32_t channels : {1u, 3u}) {
    const data::ImageShape shape{header->height, header->width, channels};
    std::vector<std::uint8_t> pixels(shape.bytes());
    (void)data::DecodeImage(file, shape, pixels);
  }
  return 0;
}
