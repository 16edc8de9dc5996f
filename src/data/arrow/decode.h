#pragma once
// Reads Arrow IPC stream bytes that nobody vouches for. Nothing is returned before it is checked:
// flatbuffers verified with depth and table limits, metadata and body inside the file, buffers
// inside the body, counts in agreement, offsets in order and inside their data. Refused by name:
// big-endian, metadata other than V5, files from before Arrow 0.15 (no continuation mark),
// compression, dictionaries, and types outside type.h. Errors are DataLoss for damage, Precondition
// for what we do not read. Pure functions; `file` must start on 8 bytes.

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "data/arrow/array.h"

namespace muster::data::arrow {

/// Where a record batch stands in its file.
struct BatchFrame {
  std::uint64_t offset = 0;           ///< of the continuation mark
  std::uint64_t metadata_length = 0;  ///< prefix of 8 and padding included; the body follows
  std::uint64_t body_length = 0;
  std::uint64_t rows = 0;
  std::uint64_t body_offset() const { return offset + metadata_length; }
  std::uint64_t end() const { return body_offset() + body_length; }
  bool operator==(const BatchFrame&) const = default;
};

/// Walks the messages of one stream, reading heads only.
class StreamWalker {
 public:
  /// Reads the schema message.
  static Result<StreamWalker> Open(ByteSpan file);
  const Schema& schema() const { return schema_; }
  /// Where the next message begins.
  std::uint64_t next() const { return offset_; }
  /// The next batch; nullopt at the end-of-stream mark. A file that ends without the mark was cut.
  Result<std::optional<BatchFrame>> Next();

 private:
  ByteSpan file_;
  Schema schema_;
  std::uint64_t offset_ = 0;
};

/// The batch at a frame that a walker or a manifest gave; a frame that does not fit the file or the
/// metadata is DataLoss. `schema` must outlive the view.
Result<BatchView> ReadBatch(ByteSpan file, const BatchFrame& frame, const Schema& schema);

}  // namespace muster::data::arrow
