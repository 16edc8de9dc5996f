#include "data/pack/idx_format.h"

#include <fmt/format.h>

#include "data/big_endian.h"

namespace muster::data {
namespace {

constexpr std::uint32_t kUnsignedBytes = 0x00000800;
constexpr std::uint64_t kMaxItem = 1u << 28;
constexpr std::string_view kFetchAgain = "is it the right file? fetch it again";

}  // namespace

std::uint64_t IdxHeader::item_bytes() const {
  std::uint64_t bytes = 1;
  for (std::size_t i = 1; i < sizes.size(); ++i) bytes *= sizes[i];
  return bytes;
}

Result<IdxHeader> ParseIdxHeader(ByteSpan bytes, std::uint32_t dimensions) {
  const std::uint32_t wanted = kUnsignedBytes | dimensions;
  if (bytes.size() < 4) {
    return Error(Code::kDataLoss, fmt::format("{} bytes, too short for an idx file", bytes.size()),
                 std::string(kFetchAgain));
  }
  if (const std::uint32_t magic = LoadBig<std::uint32_t>(bytes, 0); magic != wanted) {
    return Error(Code::kDataLoss,
                 fmt::format("idx magic is 0x{:08x}, expected 0x{:08x} ({})", magic, wanted,
                             dimensions == 3 ? "images" : "labels"),
                 std::string(kFetchAgain));
  }
  if (bytes.size() < IdxHeaderBytes(dimensions)) {
    return Error(Code::kDataLoss, "the idx header is cut short", std::string(kFetchAgain));
  }
  IdxHeader header;
  std::uint64_t item = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    header.sizes.push_back(LoadBig<std::uint32_t>(bytes, 4 + 4 * std::size_t{i}));
    if (i > 0) item *= header.sizes.back();
    if (i > 0 && (item == 0 || item > kMaxItem)) {
      return Error(Code::kDataLoss,
                   fmt::format("the header promises images of {} × {} bytes", header.sizes[1],
                               dimensions > 2 ? LoadBig<std::uint32_t>(bytes, 12) : 1),
                   std::string(kFetchAgain));
    }
  }
  return header;
}

}  // namespace muster::data
