#include "data/arrow/array.h"

#include <cstring>

#include "base/error.h"

namespace muster::data::arrow {
namespace {

template <typename T>
T Load(ByteSpan bytes, std::int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

bool Bit(ByteSpan bits, std::int64_t index) {
  return (std::to_integer<unsigned>(bits[static_cast<std::size_t>(index) / 8]) >> (index % 8) &
          1) != 0;
}

template <typename Signed, typename Unsigned>
std::int64_t LoadInt(ByteSpan data, std::int64_t row, bool is_signed) {
  return is_signed ? static_cast<std::int64_t>(Load<Signed>(data, row))
                   : static_cast<std::int64_t>(Load<Unsigned>(data, row));
}

}  // namespace

bool ArrayView::IsNull(std::int64_t row) const {
  MUSTER_CHECK(row >= 0 && row < length);
  if (field->type == TypeId::kNull) return true;
  return !validity.empty() && !Bit(validity, row);
}

std::int64_t ArrayView::Offset(std::int64_t i) const {
  const bool large = field->type == TypeId::kLargeBinary || field->type == TypeId::kLargeUtf8 ||
                     field->type == TypeId::kLargeList;
  return large ? Load<std::int64_t>(offsets, i) : Load<std::int32_t>(offsets, i);
}

ByteSpan ArrayView::Bytes(std::int64_t row) const {
  if (IsNull(row)) return {};
  if (field->type == TypeId::kFixedSizeBinary) {
    const auto size = static_cast<std::size_t>(field->fixed_size);
    return data.subspan(static_cast<std::size_t>(row) * size, size);
  }
  const auto [begin, end] = Between(row, static_cast<std::int64_t>(data.size()));
  return data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

std::int64_t ArrayView::Integer(std::int64_t row) const {
  MUSTER_CHECK(row >= 0 && row < length);
  if (field->type == TypeId::kBool) return Bit(data, row) ? 1 : 0;
  switch (field->bit_width) {
    case 8:
      return LoadInt<std::int8_t, std::uint8_t>(data, row, field->is_signed);
    case 16:
      return LoadInt<std::int16_t, std::uint16_t>(data, row, field->is_signed);
    case 32:
      return LoadInt<std::int32_t, std::uint32_t>(data, row, field->is_signed);
    default:
      return Load<std::int64_t>(data, row);
  }
}

double ArrayView::Number(std::int64_t row) const {
  MUSTER_CHECK(row >= 0 && row < length);
  return field->bit_width == 32 ? static_cast<double>(Load<float>(data, row))
                                : Load<double>(data, row);
}

std::pair<std::int64_t, std::int64_t> ArrayView::Items(std::int64_t row) const {
  MUSTER_CHECK(row >= 0 && row < length);
  if (field->type == TypeId::kFixedSizeList) {
    return {row * field->fixed_size, (row + 1) * field->fixed_size};
  }
  return Between(row, children[0].length);
}

std::pair<std::int64_t, std::int64_t> ArrayView::Between(std::int64_t row,
                                                         std::int64_t most) const {
  const std::int64_t begin = Offset(row);
  const std::int64_t end = Offset(row + 1);
  return begin >= 0 && begin <= end && end <= most ? std::pair(begin, end) : std::pair(most, most);
}

}  // namespace muster::data::arrow
