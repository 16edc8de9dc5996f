#include "data/layout/image_columns.h"

#include <algorithm>

#include "base/crc32c.h"

namespace muster::data {
namespace {

using arrow::Field;
using arrow::TypeId;

int ChildOf(const Field& field, std::string_view name, TypeId type, TypeId large) {
  for (std::size_t i = 0; i < field.children.size(); ++i) {
    const Field& child = field.children[i];
    if (child.name == name && (child.type == type || child.type == large)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

bool IsImage(const Field& field) {
  return field.type == TypeId::kStruct &&
         ChildOf(field, "bytes", TypeId::kBinary, TypeId::kLargeBinary) >= 0;
}

}  // namespace

Result<ImageColumns> ImageColumns::Find(const arrow::Schema& schema, const Features& features) {
  ImageColumns columns;
  columns.image = schema.IndexOf(features.image);
  for (std::size_t i = 0; columns.image < 0 && i < schema.fields.size(); ++i) {
    const bool other =
        std::ranges::find(features.others, schema.fields[i].name) != features.others.end();
    if (!other && IsImage(schema.fields[i])) columns.image = static_cast<int>(i);
  }
  if (columns.image < 0 || !IsImage(schema.fields[static_cast<std::size_t>(columns.image)])) {
    return Error(Code::kPrecondition, "the set has no column of encoded images",
                 "'muster data ls' shows its columns; images are struct<bytes, path>");
  }
  const Field& image = schema.fields[static_cast<std::size_t>(columns.image)];
  columns.bytes = ChildOf(image, "bytes", TypeId::kBinary, TypeId::kLargeBinary);
  columns.path = ChildOf(image, "path", TypeId::kUtf8, TypeId::kLargeUtf8);
  const int label = schema.IndexOf(features.label);
  if (label >= 0 && schema.fields[static_cast<std::size_t>(label)].type == TypeId::kInt) {
    columns.label = label;
  }
  const int source = schema.IndexOf("source");
  if (source >= 0 && schema.fields[static_cast<std::size_t>(source)].type == TypeId::kUtf8) {
    columns.source = source;
  }
  return columns;
}

std::uint32_t FrameCrc(ByteSpan file, const arrow::BatchFrame& frame,
                       const arrow::ArrayView& main) {
  const ByteSpan message = file.subspan(frame.offset, frame.metadata_length + frame.body_length);
  if (main.data.empty()) return Crc32c(message);
  const auto begin = static_cast<std::size_t>(main.data.data() - message.data());
  return Crc32c(message.subspan(begin + main.data.size()), Crc32c(message.first(begin)));
}

}  // namespace muster::data
