#pragma once
// Bytes of Arrow IPC stream messages, for a writer that owns the file: schema message, the head of
// a record batch (everything before its body), end-of-stream mark. Metadata V5, little-endian,
// uncompressed. Pure functions; the same arguments give the same bytes.
//
// A batch head is padded with zeros inside its metadata length so that the body starts on a
// multiple of 4,096 in the file, which every reader that we know accepts (docs/formats/dataset.md).

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/arrow/type.h"

namespace muster::data::arrow {

inline constexpr std::uint64_t kBodyAlignment = 4096;
inline constexpr std::uint64_t kBufferAlignment = 64;

struct FieldNode {
  std::int64_t length = 0;
  std::int64_t null_count = 0;
};
struct BufferPlace {
  std::int64_t offset = 0;  ///< from the body's start, a multiple of 8
  std::int64_t length = 0;  ///< without padding
};
/// Nodes and buffers in the specification's depth-first order.
struct BatchLayout {
  std::int64_t rows = 0;
  std::vector<FieldNode> nodes;
  std::vector<BufferPlace> buffers;
  std::int64_t body_length = 0;  ///< with padding, a multiple of 8
};

std::vector<std::byte> EncodeSchema(const Schema& schema);
/// `file_offset`: where the head will stand, a multiple of 8.
std::vector<std::byte> EncodeBatchHead(const BatchLayout& layout, std::uint64_t file_offset);
inline constexpr std::array<std::byte, 8> kEndOfStream{std::byte{0xff}, std::byte{0xff},
                                                       std::byte{0xff}, std::byte{0xff}};

constexpr std::uint64_t RoundUp(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace muster::data::arrow
