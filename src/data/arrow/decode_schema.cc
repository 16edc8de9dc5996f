#include <fmt/format.h>

#include "data/arrow/message.h"

namespace muster::data::arrow {
namespace {

constexpr int kMaxNesting = 32;
constexpr std::size_t kMaxFields = 10'000;

Error Refused(std::string_view field, std::string_view what) {
  return Error(Code::kPrecondition, fmt::format("column '{}': {}", field, what),
               "Muster reads integers, floats, booleans, binary, text, structs and lists");
}

Status ReadInt(const fb::Field& from, Field& field) {
  const auto* type = from.type_as_Int();
  field.type = TypeId::kInt;
  field.bit_width = type == nullptr ? 0 : type->bit_width();
  field.is_signed = type != nullptr && type->is_signed();
  for (const int known : {8, 16, 32, 64}) {
    if (field.bit_width == known) return Ok();
  }
  return Refused(field.name, fmt::format("integers of {} bits", field.bit_width));
}

Status ReadFloat(const fb::Field& from, Field& field) {
  const auto* type = from.type_as_FloatingPoint();
  field.type = TypeId::kFloat;
  const auto precision = type == nullptr ? fb::Precision::Half : type->precision();
  if (precision < fb::Precision::Half || precision > fb::Precision::Double) {
    return Refused(field.name, "unknown float precision");
  }
  field.bit_width = 16 << static_cast<int>(precision);
  return Ok();
}

Status ReadFixedSize(const fb::Field& from, Field& field) {
  if (from.type_type() == fb::Type::FixedSizeBinary) {
    const auto* type = from.type_as_FixedSizeBinary();
    field.type = TypeId::kFixedSizeBinary;
    field.fixed_size = type == nullptr ? 0 : type->byte_width();
  } else {
    const auto* type = from.type_as_FixedSizeList();
    field.type = TypeId::kFixedSizeList;
    field.fixed_size = type == nullptr ? 0 : type->list_size();
  }
  if (field.fixed_size < 0) {
    return Refused(field.name, fmt::format("a fixed size of {}", field.fixed_size));
  }
  return Ok();
}

Status ReadType(const fb::Field& from, Field& field) {
  const auto plain = [&field](TypeId type) {
    field.type = type;
    return Ok();
  };
  switch (from.type_type()) {
    case fb::Type::Null:
      return plain(TypeId::kNull);
    case fb::Type::Bool:
      return plain(TypeId::kBool);
    case fb::Type::Binary:
      return plain(TypeId::kBinary);
    case fb::Type::Utf8:
      return plain(TypeId::kUtf8);
    case fb::Type::LargeBinary:
      return plain(TypeId::kLargeBinary);
    case fb::Type::LargeUtf8:
      return plain(TypeId::kLargeUtf8);
    case fb::Type::List:
      return plain(TypeId::kList);
    case fb::Type::LargeList:
      return plain(TypeId::kLargeList);
    case fb::Type::Struct:
      return plain(TypeId::kStruct);
    case fb::Type::Int:
      return ReadInt(from, field);
    case fb::Type::FloatingPoint:
      return ReadFloat(from, field);
    case fb::Type::FixedSizeBinary:
    case fb::Type::FixedSizeList:
      return ReadFixedSize(from, field);
    case fb::Type::NONE:
    case fb::Type::Decimal:
    case fb::Type::Date:
    case fb::Type::Time:
    case fb::Type::Timestamp:
    case fb::Type::Interval:
    case fb::Type::Union:
    case fb::Type::Map:
    case fb::Type::Duration:
      break;
  }
  return Refused(field.name, fmt::format("Arrow type number {} is not supported",
                                         static_cast<int>(from.type_type())));
}

bool ChildCountFits(const Field& field) {
  switch (field.type) {
    case TypeId::kList:
    case TypeId::kLargeList:
    case TypeId::kFixedSizeList:
      return field.children.size() == 1;
    case TypeId::kStruct:
      return true;
    case TypeId::kNull:
    case TypeId::kInt:
    case TypeId::kFloat:
    case TypeId::kBool:
    case TypeId::kBinary:
    case TypeId::kUtf8:
    case TypeId::kLargeBinary:
    case TypeId::kLargeUtf8:
    case TypeId::kFixedSizeBinary:
      return field.children.empty();
  }
  return false;
}

void ReadExtension(const fb::Field& from, Field& field) {
  if (from.custom_metadata() == nullptr) return;
  for (const fb::KeyValue* pair : *from.custom_metadata()) {
    if (pair->key() == nullptr || pair->value() == nullptr) continue;
    if (pair->key()->string_view() == "ARROW:extension:name") {
      field.extension = pair->value()->str();
    } else if (pair->key()->string_view() == "ARROW:extension:metadata") {
      field.extension_metadata = pair->value()->str();
    }
  }
}

Result<Field> ReadField(const fb::Field& from, int depth, std::size_t& budget) {
  Field field;
  field.name = from.name() == nullptr ? "" : from.name()->str();
  field.nullable = from.nullable();
  if (depth > kMaxNesting) return Refused(field.name, "nested too deeply");
  if (budget-- == 0) return Error(Code::kPrecondition, "the schema has more than 10,000 fields");
  if (from.dictionary() != nullptr) return Refused(field.name, "dictionary encoding");
  MUSTER_TRY(ReadType(from, field));
  ReadExtension(from, field);
  if (from.children() != nullptr) {
    for (const fb::Field* child : *from.children()) {
      field.children.push_back(MUSTER_TRY(ReadField(*child, depth + 1, budget)));
    }
  }
  if (!ChildCountFits(field)) {
    return Refused(field.name, fmt::format("{} child fields for its type", field.children.size()));
  }
  return field;
}

}  // namespace

Result<Schema> ReadSchema(const fb::Schema& from) {
  if (from.endianness() != fb::Endianness::Little) {
    return Error(Code::kPrecondition, "the stream is big-endian",
                 "rewrite it with pyarrow on a little-endian machine");
  }
  Schema schema;
  std::size_t budget = kMaxFields;
  if (from.fields() != nullptr) {
    for (const fb::Field* field : *from.fields()) {
      schema.fields.push_back(MUSTER_TRY(ReadField(*field, 0, budget)));
    }
  }
  if (from.custom_metadata() != nullptr) {
    for (const fb::KeyValue* pair : *from.custom_metadata()) {
      if (pair->key() == nullptr || pair->value() == nullptr) continue;
      schema.metadata.emplace_back(pair->key()->str(), pair->value()->str());
    }
  }
  return schema;
}

}  // namespace muster::data::arrow
