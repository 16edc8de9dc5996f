#include "data/decode/image.h"

#include <gtest/gtest.h>

#include <vector>

#include "data/testing/sample_data.h"

namespace muster::data {
namespace {

// A 2 × 1 JPEG, quality 90, made by Pillow 13: red, then blue, 4:4:4.
constexpr unsigned char kTinyJpeg[] = {
    0xff, 0xd8, 0xff, 0xe0, 0x00, 0x10, 0x4a, 0x46, 0x49, 0x46, 0x00, 0x01, 0x01, 0x00, 0x00, 0x01,
    0x00, 0x01, 0x00, 0x00, 0xff, 0xdb, 0x00, 0x43, 0x00, 0x03, 0x02, 0x02, 0x03, 0x02, 0x02, 0x03,
    0x03, 0x03, 0x03, 0x04, 0x03, 0x03, 0x04, 0x05, 0x08, 0x05, 0x05, 0x04, 0x04, 0x05, 0x0a, 0x07,
    0x07, 0x06, 0x08, 0x0c, 0x0a, 0x0c, 0x0c, 0x0b, 0x0a, 0x0b, 0x0b, 0x0d, 0x0e, 0x12, 0x10, 0x0d,
    0x0e, 0x11, 0x0e, 0x0b, 0x0b, 0x10, 0x16, 0x10, 0x11, 0x13, 0x14, 0x15, 0x15, 0x15, 0x0c, 0x0f,
    0x17, 0x18, 0x16, 0x14, 0x18, 0x12, 0x14, 0x15, 0x14, 0xff, 0xdb, 0x00, 0x43, 0x01, 0x03, 0x04,
    0x04, 0x05, 0x04, 0x05, 0x09, 0x05, 0x05, 0x09, 0x14, 0x0d, 0x0b, 0x0d, 0x14, 0x14, 0x14, 0x14,
    0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14,
    0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14,
    0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0xff, 0xc0,
    0x00, 0x11, 0x08, 0x00, 0x01, 0x00, 0x02, 0x03, 0x01, 0x11, 0x00, 0x02, 0x11, 0x01, 0x03, 0x11,
    0x01, 0xff, 0xc4, 0x00, 0x14, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0xff, 0xc4, 0x00, 0x1b, 0x10, 0x00, 0x00, 0x07, 0x01,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x03, 0x05,
    0x06, 0x35, 0x74, 0xb2, 0xff, 0xc4, 0x00, 0x15, 0x01, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x09, 0xff, 0xc4, 0x00, 0x1c, 0x11,
    0x00, 0x00, 0x07, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x02, 0x03, 0x05, 0x06, 0x36, 0xb3, 0x73, 0x74, 0xff, 0xda, 0x00, 0x0c, 0x03, 0x01, 0x00,
    0x02, 0x11, 0x03, 0x11, 0x00, 0x3f, 0x00, 0x03, 0xc8, 0x6f, 0xdc, 0xb4, 0xab, 0xd9, 0x8a, 0x35,
    0x04, 0xa9, 0xb4, 0xf9, 0x90, 0xc8, 0xa0, 0x26, 0x76, 0x77, 0x3e, 0xeb, 0x68, 0x61, 0xff, 0xd9};
ByteSpan TinyJpeg() { return std::as_bytes(std::span(kTinyJpeg)); }

std::string ErrorOf(std::string_view file, std::uint64_t max_pixels = kMaxPixels) {
  const auto header = ReadImageHeader(AsBytes(file), max_pixels);
  return header ? "no error" : header.error().message();
}

std::string Cut(std::string text, std::size_t keep) {
  text.resize(keep);
  return text;
}

TEST(ImageHeader, ReadsDimensions) {
  const auto png = ReadImageHeader(AsBytes(GreyPng(9, 5, 7)));
  ASSERT_TRUE(png);
  EXPECT_EQ(png->height, 5u);
  EXPECT_EQ(png->width, 7u);
  EXPECT_EQ(png->channels, 1u);
  const auto jpeg = ReadImageHeader(TinyJpeg());
  ASSERT_TRUE(jpeg) << jpeg.error().ToString();
  EXPECT_EQ(jpeg->height, 1u);
  EXPECT_EQ(jpeg->width, 2u);
  EXPECT_EQ(jpeg->channels, 3u);
}

TEST(ImageHeader, FindsEveryCutOfAPngAndAJpeg) {
  const std::string png = GreyPng(9);
  for (std::size_t keep = 0; keep < png.size(); ++keep) {
    ASSERT_NE(ErrorOf(Cut(png, keep)), "no error") << keep;
  }
  const std::string jpeg(AsText(TinyJpeg()));
  for (std::size_t keep = 0; keep < jpeg.size(); ++keep) {
    ASSERT_NE(ErrorOf(Cut(jpeg, keep)), "no error") << keep;
  }
}

TEST(ImageHeader, RefusesAbsurdDimensionsBeforeAllocating) {
  std::string png = GreyPng(9);
  png.replace(16, 8, std::string("\x00\x01\x86\xa0\x00\x01\x86\xa0", 8));  // 100,000 × 100,000
  EXPECT_EQ(ErrorOf(png), "has 100000 × 100000 pixels, the limit is 268435456");
  png.replace(16, 4, std::string(4, '\0'));
  EXPECT_EQ(ErrorOf(png), "has 0 × 100000 pixels");
}

TEST(ImageHeader, SaysWhatElseAFileIs) {
  EXPECT_EQ(ErrorOf(""), "is empty");
  EXPECT_EQ(ErrorOf("GIF89a"), "is a GIF, not a PNG or JPEG");
  EXPECT_EQ(ErrorOf("<html>"), "is text, not a PNG or JPEG");
  EXPECT_EQ(ErrorOf("\x1f\x8b\x08"), "is gzip-compressed, not a PNG or JPEG");
  EXPECT_EQ(ErrorOf("hello"), "is not a PNG or JPEG");
}

TEST(Png, RoundTripsPixels) {
  const ImageShape shape{28, 28, 1};
  std::vector<std::uint8_t> pixels(shape.bytes());
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * i);
  const auto png = EncodePng(shape, pixels);
  ASSERT_TRUE(png);
  std::vector<std::uint8_t> back(shape.bytes());
  ASSERT_TRUE(DecodeImage(*png, shape, back));
  EXPECT_EQ(back, pixels);
  EXPECT_EQ(*EncodePng(shape, pixels), *png);
}

TEST(Png, ConvertsBetweenGreyAndColour) {
  const ImageShape colour{1, 2, 3};
  const std::vector<std::uint8_t> pixels{255, 0, 0, 10, 20, 30};
  const auto png = EncodePng(colour, pixels);
  ASSERT_TRUE(png);
  std::vector<std::uint8_t> grey(2);
  ASSERT_TRUE(DecodeImage(*png, {1, 2, 1}, grey));
  EXPECT_EQ(grey, (std::vector<std::uint8_t>{76, 18}));  // Pillow's convert("L") of the same
  std::vector<std::uint8_t> spread(5 * 7 * 3);
  ASSERT_TRUE(DecodeImage(AsBytes(GreyPng(99)), {5, 7, 3}, spread));
  EXPECT_EQ(spread, std::vector<std::uint8_t>(5 * 7 * 3, 99));
}

TEST(Png, DamagedPixelsAreAnError) {
  std::string png = GreyPng(9);
  png[png.size() - 20] = static_cast<char>(png[png.size() - 20] ^ 4);  // inside IDAT
  std::vector<std::uint8_t> pixels(5 * 7);
  const Status decoded = DecodeImage(AsBytes(png), {5, 7, 1}, pixels);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Code::kDataLoss);
}

TEST(Png, AHeaderThatCannotBeIsDamage) {
  const auto with = [](std::size_t at, const std::string& bytes) {
    std::string png = GreyPng(9);
    return ErrorOf(png.replace(at, bytes.size(), bytes));
  };
  EXPECT_EQ(with(12, "XHDR"), "is a PNG without a header");
  EXPECT_EQ(with(24, "\x03"), "has bit depth 3 with colour type 0");
  EXPECT_EQ(with(24, "\x04\x02"), "has bit depth 4 with colour type 2");
  EXPECT_EQ(with(25, "\x05"), "has bit depth 8 with colour type 5");
  EXPECT_EQ(with(16, "\x80"), "has 2147483655 × 5 pixels");
  EXPECT_EQ(with(37, "XDAT"), "has no image data");
}

TEST(Jpeg, WhatIsNoJpegOfOursIsSaid) {
  const std::string jpeg(AsText(TinyJpeg()));
  const auto frame = jpeg.find("\xff\xc0");
  std::string cmyk = jpeg;
  cmyk[frame + 9] = 4;
  EXPECT_EQ(ErrorOf(cmyk), "is a CMYK JPEG");
  std::string narrow = jpeg;
  narrow.replace(frame + 2, 2, std::string("\0\7", 2));
  EXPECT_EQ(ErrorOf(narrow), "has a JPEG frame header of another size");
  std::string headless = jpeg;
  headless.erase(frame, 19);
  EXPECT_EQ(ErrorOf(headless), "is a JPEG without a frame header");
}

TEST(Jpeg, PixelsThatAreMissingAreAnErrorAndNotGrey) {
  std::string jpeg(AsText(TinyJpeg()));
  jpeg.erase(jpeg.size() - 22, 20);  // out of the scan, the end of the image stays
  ASSERT_EQ(ErrorOf(jpeg), "no error");
  std::vector<std::uint8_t> rgb(6);
  const Status decoded = DecodeImage(AsBytes(jpeg), {1, 2, 3}, rgb);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Code::kDataLoss);
}

TEST(Jpeg, DecodesToColourAndGrey) {
  std::vector<std::uint8_t> rgb(6);
  ASSERT_TRUE(DecodeImage(TinyJpeg(), {1, 2, 3}, rgb));
  EXPECT_GT(rgb[0], 200);
  EXPECT_LT(rgb[2], 60);
  EXPECT_GT(rgb[5], 200);
  std::vector<std::uint8_t> grey(2);
  ASSERT_TRUE(DecodeImage(TinyJpeg(), {1, 2, 1}, grey));
  EXPECT_NEAR(grey[0], 76, 12);
}

TEST(ImageHeader, HintsNameNoFlagOfAProgram) {
  std::string png = GreyPng(9);
  png.replace(16, 8, std::string("\x00\x01\x86\xa0\x00\x01\x86\xa0", 8));
  for (const std::string& file : {png, std::string("GIF89a"), std::string("hello")}) {
    const auto header = ReadImageHeader(AsBytes(file));
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().hint().find("--"), std::string::npos) << header.error().hint();
  }
}

TEST(DecodeImage, AnotherSizeIsAnErrorWithBothSizes) {
  std::vector<std::uint8_t> pixels(4 * 4);
  const Status decoded = DecodeImage(AsBytes(GreyPng(1)), {4, 4, 1}, pixels);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().message(), "the image has 7 × 5 pixels, expected 4 × 4");
}

}  // namespace
}  // namespace muster::data
