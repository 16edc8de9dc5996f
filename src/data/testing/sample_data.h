#pragma once
// Small inputs for the tests of data: a temporary folder, idx files, PNG files, and a packed set.
// Only included by tests; failures end the test program.

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "data/decode/image.h"
#include "data/pack/input.h"
#include "data/pack/packer.h"

namespace muster::data {

/// A folder of its own below the test's temporary folder, removed at the end.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path);
/// Makes the folders above it too.
void WriteFile(const std::string& path, std::string_view content);
/// Flips one bit of a file.
void FlipBit(const std::string& path, std::size_t at, int bit = 0);

/// Big-endian, as in PNG and idx.
void PutBig(std::string& out, std::uint32_t value);

std::string IdxImages(std::uint32_t count, std::uint32_t height = 4, std::uint32_t width = 6);
std::string IdxLabels(std::uint32_t count);
/// Pixel (y, x) of the idx image `index`.
std::uint8_t SamplePixel(std::uint64_t index, std::size_t at);

/// A grey PNG whose pixels all have the value `shade`.
std::string GreyPng(std::uint8_t shade, std::uint32_t height = 5, std::uint32_t width = 7);

/// Packs `rows` idx images (train only) into `folder`/set with small shards; the set's path.
std::string PackSample(const TempFolder& folder, std::uint32_t rows,
                       std::int64_t shard_bytes = 100'000);

}  // namespace muster::data
