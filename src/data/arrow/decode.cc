#include "data/arrow/decode.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "data/arrow/message.h"

namespace muster::data::arrow {
namespace {

/// Takes nodes and buffers in depth-first order and checks each against the body.
class BatchReader {
 public:
  BatchReader(const fb::RecordBatch& batch, ByteSpan body) : batch_(batch), body_(body) {}

  Result<BatchView> Read(const Schema& schema) {
    BatchView view{.rows = batch_.length()};
    if (view.rows < 0) return Bad("the batch", fmt::format("{} rows", view.rows));
    for (const Field& field : schema.fields) {
      view.columns.push_back(MUSTER_TRY(ReadArray(field, view.rows)));
    }
    if (next_node_ != Count(batch_.nodes()) || next_buffer_ != Count(batch_.buffers())) {
      return Bad("the batch", "more nodes or buffers than its schema has columns for");
    }
    return view;
  }

 private:
  template <typename Vector>
  static std::uint32_t Count(const Vector* vector) {
    return vector == nullptr ? 0 : vector->size();
  }
  static Error Bad(std::string_view where, std::string_view what) {
    return Error(Code::kDataLoss, fmt::format("{} has {}", where, what));
  }

  Result<ByteSpan> TakeBuffer(const Field& field, std::uint64_t need) {
    if (next_buffer_ >= Count(batch_.buffers())) return Bad(field.name, "too few buffers");
    const fb::Buffer* buffer = batch_.buffers()->Get(next_buffer_++);
    const std::int64_t offset = buffer->offset(), length = buffer->length();
    if (offset < 0 || length < 0 || static_cast<std::uint64_t>(offset) > body_.size() ||
        static_cast<std::uint64_t>(length) > body_.size() - static_cast<std::uint64_t>(offset)) {
      return Bad(field.name, fmt::format("a buffer of {} bytes at {} outside its body of {}",
                                         length, offset, body_.size()));
    }
    if (static_cast<std::uint64_t>(length) < need) {
      return Bad(field.name, fmt::format("a buffer of {} bytes that needs {}", length, need));
    }
    return body_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
  }

  Status TakeValidity(const Field& field, ArrayView& array) {
    const std::uint64_t need = (static_cast<std::uint64_t>(array.length) + 7) / 8;
    // A writer may leave the bitmap out when nothing is null.
    array.validity = MUSTER_TRY(TakeBuffer(field, array.null_count == 0 ? 0 : need));
    if (array.validity.size() < need) array.validity = {};
    return Ok();
  }

  Status TakeOffsets(const Field& field, ArrayView& array, std::uint64_t width) {
    const auto count = static_cast<std::uint64_t>(array.length) + 1;
    array.offsets = MUSTER_TRY(TakeBuffer(field, array.length == 0 ? 0 : count * width));
    if (array.length == 0) return Ok();
    std::int64_t before = array.Offset(0);
    if (before < 0) return Bad(field.name, fmt::format("a first offset of {}", before));
    for (std::int64_t i = 1; i <= array.length; ++i) {
      const std::int64_t now = array.Offset(i);
      if (now < before) {
        return Bad(field.name, fmt::format("offset {} behind {} at row {}", now, before, i - 1));
      }
      before = now;
    }
    return Ok();
  }

  /// The end of what the offsets refer to.
  static std::int64_t End(const ArrayView& array) {
    return array.length == 0 ? 0 : array.Offset(array.length);
  }

  Status TakeBytes(const Field& field, ArrayView& array, std::uint64_t width) {
    MUSTER_TRY(TakeOffsets(field, array, width));
    array.data = MUSTER_TRY(TakeBuffer(field, static_cast<std::uint64_t>(End(array))));
    return Ok();
  }

  Status TakeItems(const Field& field, ArrayView& array, std::uint64_t width) {
    MUSTER_TRY(TakeOffsets(field, array, width));
    array.children.push_back(MUSTER_TRY(ReadArray(field.children[0], End(array), true)));
    return Ok();
  }

  /// `bits` of each value times the rows, in bytes; rows come from the file.
  Status TakeFixed(const Field& field, ArrayView& array, std::uint64_t bits) {
    const auto rows = static_cast<std::uint64_t>(array.length);
    if (bits != 0 && rows > std::numeric_limits<std::uint64_t>::max() / 2 / bits) {
      return Bad(field.name, fmt::format("{} rows", rows));
    }
    array.data = MUSTER_TRY(TakeBuffer(field, (rows * bits + 7) / 8));
    return Ok();
  }

  Status TakeFixedItems(const Field& field, ArrayView& array) {
    std::int64_t items = 0;
    if (__builtin_mul_overflow(array.length, std::int64_t{field.fixed_size}, &items)) {
      return Bad(field.name, fmt::format("{} rows", array.length));
    }
    array.children.push_back(MUSTER_TRY(ReadArray(field.children[0], items, true)));
    return Ok();
  }

  Status TakeValues(const Field& field, ArrayView& array) {
    switch (field.type) {
      case TypeId::kNull:
        return Ok();
      case TypeId::kInt:
      case TypeId::kFloat:
        return TakeFixed(field, array, static_cast<std::uint64_t>(field.bit_width));
      case TypeId::kBool:
        return TakeFixed(field, array, 1);
      case TypeId::kFixedSizeBinary:
        return TakeFixed(field, array, 8 * static_cast<std::uint64_t>(field.fixed_size));
      case TypeId::kBinary:
      case TypeId::kUtf8:
        return TakeBytes(field, array, 4);
      case TypeId::kLargeBinary:
      case TypeId::kLargeUtf8:
        return TakeBytes(field, array, 8);
      case TypeId::kList:
        return TakeItems(field, array, 4);
      case TypeId::kLargeList:
        return TakeItems(field, array, 8);
      case TypeId::kFixedSizeList:
        return TakeFixedItems(field, array);
      case TypeId::kStruct:
        for (const Field& child : field.children) {
          array.children.push_back(MUSTER_TRY(ReadArray(child, array.length)));
        }
        return Ok();
    }
    return Ok();
  }

  /// `longer`: items of a list may go on behind the last one that is used.
  Result<ArrayView> ReadArray(const Field& field, std::int64_t expected, bool longer = false) {
    if (next_node_ >= Count(batch_.nodes())) return Bad(field.name, "too few nodes");
    const fb::FieldNode* node = batch_.nodes()->Get(next_node_++);
    ArrayView array{.field = &field, .length = node->length(), .null_count = node->null_count()};
    if (array.length < expected || (array.length > expected && !longer)) {
      return Bad(field.name, fmt::format("{} rows, expected {}", array.length, expected));
    }
    // An array of nulls has no buffers at all, so its length is bounded by nothing else.
    if (array.length > kMaxRows) return Bad(field.name, fmt::format("{} rows", array.length));
    if (array.null_count < 0 || array.null_count > array.length) {
      return Bad(field.name, fmt::format("{} nulls in {} rows", array.null_count, array.length));
    }
    if (field.type != TypeId::kNull) MUSTER_TRY(TakeValidity(field, array));
    MUSTER_TRY(TakeValues(field, array));
    return array;
  }

  static constexpr std::int64_t kMaxRows = std::int64_t{1} << 40;
  const fb::RecordBatch& batch_;
  ByteSpan body_;
  std::uint32_t next_node_ = 0;
  std::uint32_t next_buffer_ = 0;
};

/// flatbuffers' verifier looks at the alignment of a vector's length only, not of its structs.
template <typename Struct>
bool Aligned(const flatbuffers::Vector<const Struct*>* vector) {
  return vector == nullptr || vector->size() == 0 ||  // of none, nothing is read
         reinterpret_cast<std::uintptr_t>(vector->Data()) % alignof(Struct) == 0;
}

Result<const fb::RecordBatch*> AsBatch(const MessageHead& head, std::uint64_t offset) {
  const fb::RecordBatch* batch = head.message->header_as_RecordBatch();
  if (batch == nullptr) {
    if (head.message->header_type() == fb::MessageHeader::DictionaryBatch) {
      return Error(Code::kPrecondition, fmt::format("dictionary batch at byte {}", offset),
                   "Muster reads no dictionary encoding");
    }
    return Damaged(offset, "expected a record batch");
  }
  if (batch->compression() != nullptr) {
    return Error(Code::kPrecondition, fmt::format("compressed record batch at byte {}", offset),
                 "write the set without IPC compression, as HF's save_to_disk does");
  }
  if (batch->length() < 0) return Damaged(offset, fmt::format("{} rows", batch->length()));
  if (!Aligned(batch->nodes()) || !Aligned(batch->buffers())) {
    return Damaged(offset, "its nodes or buffers are not aligned to 8 bytes");
  }
  return batch;
}

}  // namespace

Result<StreamWalker> StreamWalker::Open(ByteSpan file) {
  const auto head = MUSTER_TRY(ReadMessageHead(file, 0));
  const fb::Schema* schema = head ? head->message->header_as_Schema() : nullptr;
  if (schema == nullptr) return Damaged(0, "the stream does not begin with a schema");
  StreamWalker walker;
  walker.file_ = file;
  walker.schema_ = MUSTER_TRY(ReadSchema(*schema));
  walker.offset_ = head->metadata_length + head->body_length;
  return walker;
}

Result<std::optional<BatchFrame>> StreamWalker::Next() {
  const auto head = MUSTER_TRY(ReadMessageHead(file_, offset_));
  if (!head) {
    const std::uint64_t behind = file_.size() - offset_ - 8;
    if (behind != 0) {
      return Damaged(offset_, fmt::format("{} bytes behind the end-of-stream mark", behind));
    }
    return std::nullopt;
  }
  const fb::RecordBatch* batch = MUSTER_TRY(AsBatch(*head, offset_));
  const BatchFrame frame{.offset = offset_,
                         .metadata_length = head->metadata_length,
                         .body_length = head->body_length,
                         .rows = static_cast<std::uint64_t>(batch->length())};
  offset_ = frame.end();
  return frame;
}

Result<BatchView> ReadBatch(ByteSpan file, const BatchFrame& frame, const Schema& schema) {
  const auto head = MUSTER_TRY(ReadMessageHead(file, frame.offset));
  if (!head) return Damaged(frame.offset, "expected a record batch, found the end of the stream");
  const fb::RecordBatch* batch = MUSTER_TRY(AsBatch(*head, frame.offset));
  if (head->metadata_length != frame.metadata_length || head->body_length != frame.body_length ||
      static_cast<std::uint64_t>(batch->length()) != frame.rows) {
    return Damaged(frame.offset, "the record batch is not the one that was recorded here");
  }
  const ByteSpan body = file.subspan(frame.body_offset(), frame.body_length);
  auto view = BatchReader(*batch, body).Read(schema);
  if (!view) return std::move(view.error()).Within(fmt::format("batch at byte {}", frame.offset));
  return view;
}

}  // namespace muster::data::arrow
