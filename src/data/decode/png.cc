#include <fmt/format.h>
#include <spng.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "data/big_endian.h"
#include "data/decode/codecs.h"

namespace muster::data {
namespace {

constexpr std::size_t kSignature = 8;
constexpr std::size_t kChunkFrame = 12;  // length, type, CRC

bool IsLegalDepth(unsigned depth, unsigned color) {
  switch (color) {
    case 0:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case 3:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case 2:
    case 4:
    case 6:
      return depth == 8 || depth == 16;
    default:
      return false;
  }
}

/// Walks the chunks to IEND without reading their content.
Status FindEnd(ByteSpan file) {
  std::size_t at = kSignature;
  bool data = false;
  while (file.size() - at >= kChunkFrame) {
    const std::uint32_t length = LoadBig<std::uint32_t>(file, at);
    const std::string_view type = AsText(file.subspan(at + 4, 4));
    if (length > file.size() - at - kChunkFrame) break;
    data = data || type == "IDAT";
    if (type == "IEND") return data ? Ok() : Status(Error(Code::kDataLoss, "has no image data"));
    at += kChunkFrame + length;
  }
  return Error(Code::kDataLoss,
               fmt::format("is cut short: {} bytes without the end of the PNG", file.size()));
}

struct FreeContext {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};
using Context = std::unique_ptr<spng_ctx, FreeContext>;

Status Check(int code, std::string_view what) {
  if (code == 0) return Ok();
  return Error(Code::kDataLoss, fmt::format("{}: {}", what, spng_strerror(code)));
}

Status DecodeAs(ByteSpan file, spng_format format, std::span<std::uint8_t> out) {
  const Context context(spng_ctx_new(0));
  if (!context) return Error(Code::kExhausted, "no memory to decode a PNG");
  constexpr std::size_t kMostChunk = 64u << 20;
  MUSTER_TRY(Check(spng_set_chunk_limits(context.get(), kMostChunk, kMostChunk), "PNG limits"));
  MUSTER_TRY(Check(spng_set_png_buffer(context.get(), file.data(), file.size()), "PNG"));
  std::size_t size = 0;
  MUSTER_TRY(Check(spng_decoded_image_size(context.get(), format, &size), "PNG header"));
  if (size != out.size()) return Error(Code::kDataLoss, "the PNG has another size than its header");
  return Check(spng_decode_image(context.get(), out.data(), out.size(), format, 0), "PNG");
}

}  // namespace

Result<ImageHeader> ReadPngHeader(ByteSpan file, std::uint64_t max_pixels) {
  constexpr std::size_t kHeader = kSignature + kChunkFrame + 13;
  if (file.size() < kHeader) {
    return Error(Code::kDataLoss, fmt::format("is cut short: {} bytes of PNG", file.size()));
  }
  if (LoadBig<std::uint32_t>(file, 8) != 13 || AsText(file.subspan(12, 4)) != "IHDR") {
    return Error(Code::kDataLoss, "is a PNG without a header");
  }
  const auto depth = std::to_integer<unsigned>(file[24]);
  const auto color = std::to_integer<unsigned>(file[25]);
  const ImageHeader header{.format = ImageFormat::kPng,
                           .height = LoadBig<std::uint32_t>(file, 20),
                           .width = LoadBig<std::uint32_t>(file, 16),
                           .channels = color == 0 || color == 4 ? 1u : 3u};
  if (!IsLegalDepth(depth, color)) {
    return Error(Code::kDataLoss,
                 fmt::format("has bit depth {} with colour type {}", depth, color));
  }
  // The standard's own limit; below it, bytes of pixels fit into 64 bits.
  if (header.height > INT32_MAX || header.width > INT32_MAX) {
    return Error(Code::kDataLoss, fmt::format("has {} × {} pixels", header.width, header.height));
  }
  MUSTER_TRY(CheckDimensions(header, max_pixels));
  MUSTER_TRY(FindEnd(file));
  return header;
}

Status DecodePng(ByteSpan file, const ImageHeader& header, const ImageShape& shape,
                 std::span<std::uint8_t> pixels) {
  if (shape.channels == 3) return DecodeAs(file, SPNG_FMT_RGB8, pixels);
  const bool plain_grey = std::to_integer<unsigned>(file[25]) == 0;
  if (plain_grey && std::to_integer<unsigned>(file[24]) <= 8) {
    return DecodeAs(file, SPNG_FMT_G8, pixels);
  }
  std::vector<std::uint8_t> rgb(std::size_t{header.height} * header.width * 3);
  MUSTER_TRY(DecodeAs(file, SPNG_FMT_RGB8, rgb));
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = Luma(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
  }
  return Ok();
}

Result<std::vector<std::byte>> EncodePng(const ImageShape& shape,
                                         std::span<const std::uint8_t> pixels) {
  MUSTER_CHECK(pixels.size() == shape.bytes() && (shape.channels == 1 || shape.channels == 3));
  const Context context(spng_ctx_new(SPNG_CTX_ENCODER));
  if (!context) return Error(Code::kExhausted, "no memory to encode a PNG");
  spng_ihdr header{};
  header.width = shape.width;
  header.height = shape.height;
  header.bit_depth = 8;
  header.color_type = shape.channels == 1 ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR;
  MUSTER_TRY(Check(spng_set_ihdr(context.get(), &header), "PNG header"));
  // A window that just holds the image, and little state: zlib's set-up costs more than deflating
  // 28 × 28 pixels does.
  const std::size_t raw = shape.bytes() + shape.height;
  const int window = std::clamp(static_cast<int>(std::bit_width(raw)), 9, 15);
  spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_set_option(context.get(), SPNG_IMG_WINDOW_BITS, window);
  spng_set_option(context.get(), SPNG_IMG_MEM_LEVEL, std::clamp(window - 7, 1, 8));
  spng_set_option(context.get(), SPNG_IMG_COMPRESSION_LEVEL, 6);
  spng_set_option(context.get(), SPNG_FILTER_CHOICE, SPNG_DISABLE_FILTERING);
  MUSTER_TRY(Check(spng_encode_image(context.get(), pixels.data(), pixels.size(), SPNG_FMT_PNG,
                                     SPNG_ENCODE_FINALIZE),
                   "encode PNG"));
  std::size_t size = 0;
  int code = 0;
  const std::unique_ptr<void, decltype(&std::free)> buffer(
      spng_get_png_buffer(context.get(), &size, &code), &std::free);
  MUSTER_TRY(Check(code, "encode PNG"));
  const auto* begin = static_cast<const std::byte*>(buffer.get());
  return std::vector<std::byte>(begin, begin + size);
}

}  // namespace muster::data
