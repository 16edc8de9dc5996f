// clang-format off: jpeglib.h needs stdio.h before it.
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on
#include <fmt/format.h>

#include <csetjmp>
#include <cstring>
#include <string>

#include "data/big_endian.h"
#include "data/decode/codecs.h"

namespace muster::data {
namespace {

unsigned At(ByteSpan file, std::size_t at) { return std::to_integer<unsigned>(file[at]); }

bool IsFrameHeader(unsigned marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}
bool StandsAlone(unsigned marker) { return marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8); }

/// Entropy-coded data escapes 0xff, so behind the start of the scan FF D9 is the end of the image.
bool HasEnd(ByteSpan scan) {
  for (std::size_t at = scan.size(); at >= 2; --at) {
    if (At(scan, at - 1) == 0xd9 && At(scan, at - 2) == 0xff) return true;
  }
  return false;
}

Error CutShort(ByteSpan file) {
  return Error(Code::kDataLoss,
               fmt::format("is cut short: {} bytes without the end of the JPEG", file.size()));
}

Status ReadFrameHeader(ByteSpan file, std::size_t at, unsigned length, ImageHeader& header) {
  if (length < 8) return Error(Code::kDataLoss, "has a JPEG frame header of another size");
  header.height = LoadBig<std::uint16_t>(file, at + 5);
  header.width = LoadBig<std::uint16_t>(file, at + 7);
  const unsigned components = At(file, at + 9);
  header.channels = components == 1 ? 1 : 3;
  if (components == 4) {
    return Error(Code::kPrecondition, "is a CMYK JPEG", "convert it to RGB");
  }
  return Ok();
}

struct Jump {
  jpeg_error_mgr base;
  std::jmp_buf target;
  bool damaged;
};

[[noreturn]] void OnError(j_common_ptr info) {
  std::longjmp(reinterpret_cast<Jump*>(info->err)->target, 1);
}

/// libjpeg fills what is missing with grey and only warns; to us that is damage.
void OnMessage(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE) {
    reinterpret_cast<Jump*>(info->err)->damaged = true;
  }
}

/// The only frame that longjmp leaves: nothing in it has a destructor.
bool DecodeRaw(ByteSpan file, const ImageShape& shape, std::uint8_t* out, char* message) {
  jpeg_decompress_struct info{};
  Jump jump{};
  info.err = jpeg_std_error(&jump.base);
  jump.base.error_exit = OnError;
  jump.base.emit_message = OnMessage;
  if (setjmp(jump.target) != 0) {
    jump.base.format_message(reinterpret_cast<j_common_ptr>(&info), message);
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = shape.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  // The accurate transform everywhere: fast ones differ between machines.
  info.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&info);
  const bool fits = info.output_width == shape.width && info.output_height == shape.height &&
                    info.output_components == static_cast<int>(shape.channels);
  while (fits && info.output_scanline < info.output_height) {
    JSAMPROW row = out + std::size_t{info.output_scanline} * shape.width * shape.channels;
    jpeg_read_scanlines(&info, &row, 1);
  }
  if (fits) jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  if (!fits) std::strcpy(message, "another size or colour than its header");
  if (fits && jump.damaged) std::strcpy(message, "its compressed data is damaged or cut short");
  return fits && !jump.damaged;
}

}  // namespace

Result<ImageHeader> ReadJpegHeader(ByteSpan file, std::uint64_t max_pixels) {
  ImageHeader header{.format = ImageFormat::kJpeg};
  bool found = false;
  std::size_t at = 2;
  while (at + 4 <= file.size()) {
    if (At(file, at) != 0xff) return Error(Code::kDataLoss, "has damaged JPEG segments");
    const unsigned marker = At(file, at + 1);
    if (marker == 0xff || StandsAlone(marker)) {
      at += marker == 0xff ? 1 : 2;
      continue;
    }
    const unsigned length = LoadBig<std::uint16_t>(file, at + 2);
    if (length < 2 || length > file.size() - at - 2) return CutShort(file);
    if (IsFrameHeader(marker)) {
      MUSTER_TRY(ReadFrameHeader(file, at, length, header));
      found = true;
    }
    at += 2 + length;
    if (marker != 0xda) continue;
    if (!found) return Error(Code::kDataLoss, "is a JPEG without a frame header");
    MUSTER_TRY(CheckDimensions(header, max_pixels));
    if (!HasEnd(file.subspan(at))) return CutShort(file);
    return header;
  }
  return CutShort(file);
}

Status DecodeJpeg(ByteSpan file, const ImageShape& shape, std::span<std::uint8_t> pixels) {
  char message[JMSG_LENGTH_MAX] = "";
  if (DecodeRaw(file, shape, pixels.data(), message)) return Ok();
  return Error(Code::kDataLoss, fmt::format("JPEG: {}", message));
}

}  // namespace muster::data
