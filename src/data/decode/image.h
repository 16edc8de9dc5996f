#pragma once
// Encoded images, PNG and JPEG: what the header promises, and pixels. The header check costs
// microseconds and finds what a decode would trip over later: zero length, another format, absurd
// dimensions, a file that was cut short (no IEND, no end-of-image marker). Pixels of any kind of
// PNG or JPEG come as 8-bit grey or RGB: alpha is dropped, 16 bits are scaled to 8, colour becomes
// grey by ITU-R 601 luma as Pillow computes it.
//
// Pure functions on bytes from outside; any thread. Errors: DataLoss for damage, Precondition for
// what Muster does not take.

#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/result.h"

namespace muster::data {

struct ImageShape {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;  ///< 1 grey, 3 RGB; images are converted to it
  std::size_t bytes() const { return std::size_t{height} * width * channels; }
  bool operator==(const ImageShape&) const = default;
};

enum class ImageFormat { kPng, kJpeg };

struct ImageHeader {
  ImageFormat format = ImageFormat::kPng;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;  ///< that keep all colour: 1 or 3
};

/// Refuses more pixels than this unless the caller says otherwise: 2^28, a third more than Pillow's
/// warning.
inline constexpr std::uint64_t kMaxPixels = 1ull << 28;
/// For who only looks at the header, or has vouched for the image before.
inline constexpr std::uint64_t kAnyPixels = ~0ull;

/// Allocates nothing by the dimensions that it reads. Hints say how to mend the image; what else a
/// user can do, such as leaving it out, is the caller's to add.
Result<ImageHeader> ReadImageHeader(ByteSpan file, std::uint64_t max_pixels = kMaxPixels);

enum class Colour {
  kMayDrop,  ///< colour becomes grey when the shape is grey
  kKeep,     ///< Precondition when the image has more channels than the shape
  kSame,     ///< Precondition when it has others
};

/// Of the first image of a set the shape has its channels, and the error says so.
Status CheckColour(const ImageHeader& header, const ImageShape& shape, Colour colour);

/// Decodes into `pixels` (height × width × channels of `shape`). Precondition when the image has
/// another height or width than `shape`; no other limit holds, as the caller made room for that
/// many.
Status DecodeImage(ByteSpan file, const ImageShape& shape, std::span<std::uint8_t> pixels,
                   Colour colour = Colour::kMayDrop);

/// The PNG file of 8-bit pixels; the same bytes for the same pixels and libraries.
Result<std::vector<std::byte>> EncodePng(const ImageShape& shape,
                                         std::span<const std::uint8_t> pixels);

}  // namespace muster::data
