#pragma once
// One framed IPC message: the continuation mark, the metadata length and a verified flatbuffer.
// Internal to arrow/.

#include <cstdint>
#include <optional>
#include <vector>

#include "arrow_schema_generated.h"
#include "base/bytes.h"
#include "base/result.h"
#include "data/arrow/type.h"

namespace muster::data::arrow {

struct MessageHead {
  /// What was verified and is read. A copy, as a mapped file may change between the two.
  std::vector<std::uint64_t> metadata;
  const fb::Message* message = nullptr;  ///< in `metadata`
  std::uint64_t metadata_length = 0;     ///< with the prefix of 8
  std::uint64_t body_length = 0;
};

/// Reads the message at `offset` and holds both its parts against the end of the file; nullopt at
/// the end-of-stream mark.
Result<std::optional<MessageHead>> ReadMessageHead(ByteSpan file, std::uint64_t offset);

Result<Schema> ReadSchema(const fb::Schema& schema);

Error Damaged(std::uint64_t offset, std::string_view what);

}  // namespace muster::data::arrow
