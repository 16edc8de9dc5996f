#pragma once
// Arrow types, fields and schemas as our own values: the subset of flat, struct and list types that
// HF datasets writes. Source: arrow.apache.org/docs/format/Columnar.html. Values.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::data::arrow {

enum class TypeId : std::uint8_t {
  kNull,
  kInt,
  kFloat,
  kBool,
  kBinary,
  kUtf8,
  kLargeBinary,
  kLargeUtf8,
  kFixedSizeBinary,
  kList,
  kLargeList,
  kFixedSizeList,
  kStruct,
};

struct Field {
  std::string name;
  TypeId type = TypeId::kNull;
  bool nullable = true;
  bool is_signed = true;        ///< kInt
  std::int32_t bit_width = 0;   ///< kInt: 8 16 32 64; kFloat: 16 32 64
  std::int32_t fixed_size = 0;  ///< kFixedSizeBinary: bytes; kFixedSizeList: items
  std::vector<Field> children;  ///< kStruct: its fields; lists: the one item field
  std::string extension;        ///< name of the extension type that it stores; empty: none
  std::string extension_metadata;
  bool operator==(const Field&) const = default;
};

struct Schema {
  std::vector<Field> fields;
  std::vector<std::pair<std::string, std::string>> metadata;

  /// Index of the top-level field of that name, or −1.
  int IndexOf(std::string_view name) const;
  /// The metadata value of a key, or empty.
  std::string_view Metadata(std::string_view key) const;
};

/// "struct<bytes: binary, path: string>", "list<int64>[3]", or the extension type's own name.
std::string TypeText(const Field& field);

Field Int64Field(std::string name);
Field Utf8Field(std::string name);
Field BinaryField(std::string name);
Field StructField(std::string name, std::vector<Field> children);

}  // namespace muster::data::arrow
