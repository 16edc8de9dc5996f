#include "data/arrow/message.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

namespace muster::data::arrow {
namespace {

constexpr std::uint64_t kPrefix = 8;
constexpr std::uint64_t kMaxMetadata = 64u << 20;
constexpr std::uint32_t kContinuation = 0xffffffff;
constexpr flatbuffers::uoffset_t kMaxDepth = 64;
constexpr flatbuffers::uoffset_t kMaxTables = 100'000;

std::uint32_t Load32(ByteSpan file, std::uint64_t offset) {
  std::uint32_t value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

/// The length of the metadata behind the prefix at `offset`; 0 is the end of the stream.
Result<std::uint64_t> ReadPrefix(ByteSpan file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < kPrefix) {
    return Damaged(offset, "the file ends without the end-of-stream mark: it was cut short");
  }
  const std::uint32_t mark = Load32(file, offset);
  if (mark != kContinuation) {
    if (offset != 0) {
      return Damaged(offset, fmt::format("found 0x{:08x} where a message must begin", mark));
    }
    if (file.size() >= 6 && AsText(file.first(6)) == "ARROW1") {
      return Error(Code::kPrecondition, "this is an Arrow IPC file, not a stream",
                   "HF datasets and Muster use the stream format; rewrite it with pyarrow.ipc");
    }
    return Error(
        Code::kPrecondition,
        fmt::format("not an Arrow IPC stream of version 0.15 or later (begins with 0x{:08x})",
                    mark),
        "files written before Arrow 0.15 must be rewritten with a newer Arrow");
  }
  const std::uint64_t length = Load32(file, offset + 4);
  if (length > kMaxMetadata || length > file.size() - offset - kPrefix) {
    return Damaged(offset, fmt::format("{} bytes of metadata do not fit into the {} bytes left",
                                       length, file.size() - offset - kPrefix));
  }
  if (length % 8 != 0) return Damaged(offset, fmt::format("metadata length {} is odd", length));
  return length;
}

}  // namespace

Error Damaged(std::uint64_t offset, std::string_view what) {
  return Error(Code::kDataLoss, fmt::format("at byte {}: {}", offset, what));
}

Result<std::optional<MessageHead>> ReadMessageHead(ByteSpan file, std::uint64_t offset) {
  if (offset % 8 != 0) return Damaged(offset, "a message must begin on a multiple of 8");
  const std::uint64_t length = MUSTER_TRY(ReadPrefix(file, offset));
  if (length == 0) return std::nullopt;
  std::vector<std::uint64_t> copy(length / sizeof(std::uint64_t));
  std::memcpy(copy.data(), file.data() + offset + kPrefix, length);
  const auto* metadata = reinterpret_cast<const std::uint8_t*>(copy.data());
  flatbuffers::Verifier verifier(metadata, length, kMaxDepth, kMaxTables);
  if (!fb::VerifyMessageBuffer(verifier)) {
    return Damaged(offset, "the metadata is not a valid Arrow message");
  }
  const fb::Message* message = fb::GetMessage(metadata);
  if (message->version() != fb::MetadataVersion::V5) {
    return Error(Code::kPrecondition,
                 fmt::format("Arrow metadata version V{} at byte {}; Muster reads V5",
                             static_cast<int>(message->version()) + 1, offset),
                 "rewrite the file with Arrow 1.0 or later");
  }
  const std::uint64_t left = file.size() - offset - kPrefix - length;
  if (message->body_length() < 0 || static_cast<std::uint64_t>(message->body_length()) > left) {
    return Damaged(offset, fmt::format("a body of {} bytes does not fit into the {} bytes left",
                                       message->body_length(), left));
  }
  const auto body_length = static_cast<std::uint64_t>(message->body_length());
  return MessageHead{std::move(copy), message, length + kPrefix, body_length};
}

}  // namespace muster::data::arrow
