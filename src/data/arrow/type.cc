#include "data/arrow/type.h"

#include <fmt/format.h>

namespace muster::data::arrow {
namespace {

std::string StructText(const Field& field) {
  std::string text = "struct<";
  for (std::size_t i = 0; i < field.children.size(); ++i) {
    text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", field.children[i].name,
                        TypeText(field.children[i]));
  }
  return text + ">";
}

/// "datasets.features.features.Array2DExtensionType" is told as "Array2DExtensionType[[2, 3], …]".
std::string ExtensionText(const Field& field) {
  return field.extension.substr(field.extension.rfind('.') + 1) + field.extension_metadata;
}

}  // namespace

std::string TypeText(const Field& field) {
  if (!field.extension.empty()) return ExtensionText(field);
  switch (field.type) {
    case TypeId::kNull:
      return "null";
    case TypeId::kInt:
      return fmt::format("{}int{}", field.is_signed ? "" : "u", field.bit_width);
    case TypeId::kFloat:
      return fmt::format("float{}", field.bit_width);
    case TypeId::kBool:
      return "bool";
    case TypeId::kBinary:
      return "binary";
    case TypeId::kLargeBinary:
      return "large_binary";
    case TypeId::kUtf8:
      return "string";
    case TypeId::kLargeUtf8:
      return "large_string";
    case TypeId::kFixedSizeBinary:
      return fmt::format("binary[{}]", field.fixed_size);
    case TypeId::kList:
      return fmt::format("list<{}>", TypeText(field.children[0]));
    case TypeId::kLargeList:
      return fmt::format("large_list<{}>", TypeText(field.children[0]));
    case TypeId::kFixedSizeList:
      return fmt::format("list<{}>[{}]", TypeText(field.children[0]), field.fixed_size);
    case TypeId::kStruct:
      return StructText(field);
  }
  return "?";
}

int Schema::IndexOf(std::string_view name) const {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::string_view Schema::Metadata(std::string_view key) const {
  for (const auto& [known, value] : metadata) {
    if (known == key) return value;
  }
  return {};
}

Field Int64Field(std::string name) {
  return {.name = std::move(name), .type = TypeId::kInt, .bit_width = 64};
}
Field Utf8Field(std::string name) { return {.name = std::move(name), .type = TypeId::kUtf8}; }
Field BinaryField(std::string name) { return {.name = std::move(name), .type = TypeId::kBinary}; }
Field StructField(std::string name, std::vector<Field> children) {
  return {.name = std::move(name), .type = TypeId::kStruct, .children = std::move(children)};
}

}  // namespace muster::data::arrow
