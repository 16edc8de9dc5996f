#include "data/arrow/encode.h"

#include <flatbuffers/flatbuffers.h>

#include <cstring>

#include "arrow_schema_generated.h"
#include "base/error.h"

namespace muster::data::arrow {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<void> EncodeType(FlatBufferBuilder& builder, const Field& field) {
  switch (field.type) {
    case TypeId::kInt:
      return fb::CreateInt(builder, field.bit_width, field.is_signed).Union();
    case TypeId::kFloat:
      return fb::CreateFloatingPoint(builder, field.bit_width == 16   ? fb::Precision::Half
                                              : field.bit_width == 32 ? fb::Precision::Single
                                                                      : fb::Precision::Double)
          .Union();
    case TypeId::kFixedSizeBinary:
      return fb::CreateFixedSizeBinary(builder, field.fixed_size).Union();
    case TypeId::kFixedSizeList:
      return fb::CreateFixedSizeList(builder, field.fixed_size).Union();
    case TypeId::kNull:
    case TypeId::kBool:
    case TypeId::kBinary:
    case TypeId::kUtf8:
    case TypeId::kLargeBinary:
    case TypeId::kLargeUtf8:
    case TypeId::kList:
    case TypeId::kLargeList:
    case TypeId::kStruct:
      return fb::CreateEmpty(builder).Union();
  }
  MUSTER_CHECK(false);
}

fb::Type TypeNumber(TypeId type) {
  switch (type) {
    case TypeId::kNull:
      return fb::Type::Null;
    case TypeId::kInt:
      return fb::Type::Int;
    case TypeId::kFloat:
      return fb::Type::FloatingPoint;
    case TypeId::kBool:
      return fb::Type::Bool;
    case TypeId::kBinary:
      return fb::Type::Binary;
    case TypeId::kUtf8:
      return fb::Type::Utf8;
    case TypeId::kLargeBinary:
      return fb::Type::LargeBinary;
    case TypeId::kLargeUtf8:
      return fb::Type::LargeUtf8;
    case TypeId::kFixedSizeBinary:
      return fb::Type::FixedSizeBinary;
    case TypeId::kList:
      return fb::Type::List;
    case TypeId::kLargeList:
      return fb::Type::LargeList;
    case TypeId::kFixedSizeList:
      return fb::Type::FixedSizeList;
    case TypeId::kStruct:
      return fb::Type::Struct;
  }
  MUSTER_CHECK(false);
}

Offset<fb::Field> EncodeField(FlatBufferBuilder& builder, const Field& field) {
  std::vector<Offset<fb::Field>> children;
  for (const Field& child : field.children) children.push_back(EncodeField(builder, child));
  const auto child_vector = builder.CreateVector(children);
  const auto name = builder.CreateString(field.name);
  const auto type = EncodeType(builder, field);
  return fb::CreateField(builder, name, field.nullable, TypeNumber(field.type), type, 0,
                         child_vector);
}

/// Prefix (continuation mark, length), metadata, and zeros up to `size`.
std::vector<std::byte> Frame(FlatBufferBuilder& builder, fb::MessageHeader kind,
                             Offset<void> header, std::int64_t body_length,
                             std::uint64_t file_offset, std::uint64_t alignment) {
  builder.Finish(fb::CreateMessage(builder, fb::MetadataVersion::V5, kind, header, body_length));
  constexpr std::uint64_t kPrefix = 8;
  const std::uint64_t end = RoundUp(file_offset + kPrefix + builder.GetSize(), alignment);
  std::vector<std::byte> bytes(end - file_offset);
  const std::uint32_t prefix[2] = {0xffffffff, static_cast<std::uint32_t>(bytes.size() - kPrefix)};
  std::memcpy(bytes.data(), prefix, kPrefix);
  std::memcpy(bytes.data() + kPrefix, builder.GetBufferPointer(), builder.GetSize());
  return bytes;
}

}  // namespace

std::vector<std::byte> EncodeSchema(const Schema& schema) {
  FlatBufferBuilder builder;
  std::vector<Offset<fb::Field>> fields;
  for (const Field& field : schema.fields) fields.push_back(EncodeField(builder, field));
  std::vector<Offset<fb::KeyValue>> metadata;
  for (const auto& [key, value] : schema.metadata) {
    const auto key_text = builder.CreateString(key);
    metadata.push_back(fb::CreateKeyValue(builder, key_text, builder.CreateString(value)));
  }
  const auto field_vector = builder.CreateVector(fields);
  const auto metadata_vector = builder.CreateVector(metadata);
  const auto header =
      fb::CreateSchema(builder, fb::Endianness::Little, field_vector, metadata_vector);
  return Frame(builder, fb::MessageHeader::Schema, header.Union(), 0, 0, kBufferAlignment);
}

std::vector<std::byte> EncodeBatchHead(const BatchLayout& layout, std::uint64_t file_offset) {
  MUSTER_CHECK(file_offset % 8 == 0 && layout.body_length % 8 == 0);
  FlatBufferBuilder builder;
  std::vector<fb::FieldNode> nodes;
  for (const FieldNode& node : layout.nodes) nodes.emplace_back(node.length, node.null_count);
  std::vector<fb::Buffer> buffers;
  for (const BufferPlace& place : layout.buffers) buffers.emplace_back(place.offset, place.length);
  const auto node_vector = builder.CreateVectorOfStructs(nodes);
  const auto buffer_vector = builder.CreateVectorOfStructs(buffers);
  const auto header = fb::CreateRecordBatch(builder, layout.rows, node_vector, buffer_vector);
  return Frame(builder, fb::MessageHeader::RecordBatch, header.Union(), layout.body_length,
               file_offset, kBodyAlignment);
}

}  // namespace muster::data::arrow
