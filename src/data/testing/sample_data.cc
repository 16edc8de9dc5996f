#include "data/testing/sample_data.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/durable.h"
#include "base/file_system.h"

namespace muster::data {
TempFolder::TempFolder() {
  std::string pattern = testing::TempDir() + "/muster_data_XXXXXX";
  MUSTER_CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempFolder::~TempFolder() { [[maybe_unused]] const Status removed = PosixFiles().RemoveAll(path_); }

std::string ReadFile(const std::string& path) {
  auto content = PosixFiles().ReadAll(path, 1_GiB);
  MUSTER_CHECK(content.has_value());
  return *content;
}

void WriteFile(const std::string& path, std::string_view content) {
  std::filesystem::create_directories(ParentOf(path));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  MUSTER_CHECK(file.good());
}

void FlipBit(const std::string& path, std::size_t at, int bit) {
  std::string content = ReadFile(path);
  MUSTER_CHECK(at < content.size());
  content[at] = static_cast<char>(content[at] ^ (1 << bit));
  WriteFile(path, content);
}

std::uint8_t SamplePixel(std::uint64_t index, std::size_t at) {
  return static_cast<std::uint8_t>(index * 7 + at * 3);
}

void PutBig(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

std::string IdxImages(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
  std::string out;
  for (const std::uint32_t word : {0x803u, count, height, width}) PutBig(out, word);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::size_t at = 0; at < std::size_t{height} * width; ++at) {
      out += static_cast<char>(SamplePixel(i, at));
    }
  }
  return out;
}

std::string IdxLabels(std::uint32_t count) {
  std::string out;
  PutBig(out, 0x801);
  PutBig(out, count);
  for (std::uint32_t i = 0; i < count; ++i) out += static_cast<char>(i % 10);
  return out;
}

std::string GreyPng(std::uint8_t shade, std::uint32_t height, std::uint32_t width) {
  const ImageShape shape{height, width, 1};
  const std::vector<std::uint8_t> pixels(shape.bytes(), shade);
  const auto png = EncodePng(shape, pixels);
  MUSTER_CHECK(png.has_value());
  return std::string(AsText(*png));
}

std::string PackSample(const TempFolder& folder, std::uint32_t rows, std::int64_t shard_bytes) {
  WriteFile(folder / "idx/train-images-idx3-ubyte", IdxImages(rows));
  WriteFile(folder / "idx/train-labels-idx1-ubyte", IdxLabels(rows));
  auto input = OpenInput(folder / "idx", {});
  MUSTER_CHECK(input.has_value());
  const auto packed = Pack(PosixFiles(), *input, folder / "set",
                           {.shard_size = {shard_bytes}, .replace = true, .durable = false});
  MUSTER_CHECK(packed.has_value());
  return folder / "set";
}

}  // namespace muster::data
