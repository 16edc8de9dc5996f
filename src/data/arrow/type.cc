#include "data/arrow/type.h"

namespace muster::data::arrow {

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
