#include "data/decode/image.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "data/decode/codecs.h"

namespace muster::data {
namespace {

struct Magic {
  std::string_view bytes;
  std::string_view name;
};
/// What people have in image folders and we do not read, so that the error can say what it is.
constexpr std::array<Magic, 7> kOthers{{{"GIF8", "a GIF"},
                                        {"BM", "a BMP"},
                                        {"RIFF", "a WebP or other RIFF file"},
                                        {"II*\0", "a TIFF"},
                                        {"MM\0*", "a TIFF"},
                                        {"\x1f\x8b", "gzip-compressed"},
                                        {"<", "text"}}};

Error Unknown(ByteSpan file) {
  for (const Magic& other : kOthers) {
    if (AsText(file).starts_with(other.bytes)) {
      return Error(Code::kPrecondition, fmt::format("is {}, not a PNG or JPEG", other.name),
                   "convert it to one of them");
    }
  }
  return Error(Code::kPrecondition, "is not a PNG or JPEG");
}

bool IsPng(ByteSpan file) { return AsText(file).starts_with("\x89PNG\r\n\x1a\n"); }
bool IsJpeg(ByteSpan file) { return AsText(file).starts_with("\xff\xd8\xff"); }

}  // namespace

Status CheckDimensions(const ImageHeader& header, std::uint64_t max_pixels) {
  if (header.width == 0 || header.height == 0) {
    return Error(Code::kDataLoss, fmt::format("has {} × {} pixels", header.width, header.height));
  }
  if (std::uint64_t{header.width} * header.height > max_pixels) {
    return Error(Code::kPrecondition, fmt::format("has {} × {} pixels, the limit is {}",
                                                  header.width, header.height, max_pixels));
  }
  return Ok();
}

std::uint8_t Luma(unsigned red, unsigned green, unsigned blue) {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

Result<ImageHeader> ReadImageHeader(ByteSpan file, std::uint64_t max_pixels) {
  if (file.empty()) return Error(Code::kDataLoss, "is empty");
  if (IsPng(file)) return ReadPngHeader(file, max_pixels);
  if (IsJpeg(file)) return ReadJpegHeader(file, max_pixels);
  return Unknown(file);
}

Status CheckColour(const ImageHeader& header, const ImageShape& shape, Colour colour) {
  const bool less = header.channels < shape.channels;
  const bool fits = header.channels == shape.channels || (less && colour == Colour::kKeep);
  if (fits || colour == Colour::kMayDrop) return Ok();
  return Error(Code::kPrecondition,
               fmt::format("the image has {}, the first one of the set has {}",
                           Counted(header.channels, "channel"), shape.channels),
               "choose for all of them: --channels 3 or --channels 1");
}

Status DecodeImage(ByteSpan file, const ImageShape& shape, std::span<std::uint8_t> pixels,
                   Colour colour) {
  MUSTER_CHECK(pixels.size() == shape.bytes() && (shape.channels == 1 || shape.channels == 3));
  const ImageHeader header = MUSTER_TRY(ReadImageHeader(file, kAnyPixels));
  if (header.height != shape.height || header.width != shape.width) {
    return Error(Code::kPrecondition,
                 fmt::format("the image has {} × {} pixels, expected {} × {}", header.width,
                             header.height, shape.width, shape.height),
                 "all images of a batch must have one size");
  }
  MUSTER_TRY(CheckColour(header, shape, colour));
  return header.format == ImageFormat::kPng ? DecodePng(file, header, shape, pixels)
                                            : DecodeJpeg(file, shape, pixels);
}

}  // namespace muster::data
