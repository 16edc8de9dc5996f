#pragma once
// One format each; image.cc picks by magic. Internal to decode/.

#include "data/decode/image.h"

namespace muster::data {

Result<ImageHeader> ReadPngHeader(ByteSpan file, std::uint64_t max_pixels);
Result<ImageHeader> ReadJpegHeader(ByteSpan file, std::uint64_t max_pixels);
Status DecodePng(ByteSpan file, const ImageHeader& header, const ImageShape& shape,
                 std::span<std::uint8_t> pixels);
Status DecodeJpeg(ByteSpan file, const ImageShape& shape, std::span<std::uint8_t> pixels);

/// Holds dimensions against zero and the cap.
Status CheckDimensions(const ImageHeader& header, std::uint64_t max_pixels);
/// ITU-R 601 luma in Pillow's fixed point.
std::uint8_t Luma(unsigned red, unsigned green, unsigned blue);

}  // namespace muster::data
