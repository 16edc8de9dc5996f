// Any bytes as an Arrow IPC stream: walked, every batch read, every value of every row touched.
#include <cstdint>
#include <vector>

#include "data/arrow/decode.h"

namespace {

using namespace muster;
using data::arrow::ArrayView;

constexpr std::int64_t kMostRows = 1000;  // lists of nulls may be long without any bytes

void Touch(const ArrayView& array);

void TouchRow(const ArrayView& array, std::int64_t row) {
  if (array.IsNull(row)) return;
  using enum data::arrow::TypeId;
  switch (array.field->type) {
    case kBinary:
    case kUtf8:
    case kLargeBinary:
    case kLargeUtf8:
    case kFixedSizeBinary: {
      std::uint64_t sum = 0;
      const ByteSpan value = array.Bytes(row);
      for (const std::byte byte : value) sum += std::to_integer<std::uint64_t>(byte);
      if (sum > 255 * value.size()) __builtin_trap();
      break;
    }
    case kInt:
    case kBool:
      (void)array.Integer(row);
      break;
    case kFloat:
      if (array.field->bit_width != 16) (void)array.Number(row);
      break;
    case kList:
    case kLargeList:
    case kFixedSizeList: {
      const auto [begin, end] = array.Items(row);
      if (begin > end || end > array.children[0].length) __builtin_trap();
      break;
    }
    case kNull:
    case kStruct:
      break;
  }
}

void Touch(const ArrayView& array) {
  for (std::int64_t row = 0; row < array.length && row < kMostRows; ++row) TouchRow(array, row);
  for (const ArrayView& child : array.children) Touch(child);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  // A file starts on a page; here on what new[] gives, which is 16.
  const std::vector<std::byte> file(reinterpret_cast<const std::byte*>(bytes),
                                    reinterpret_cast<const std::byte*>(bytes) + size);
  auto walker = data::arrow::StreamWalker::Open(file);
  while (walker) {
    const auto frame = walker->Next();
    if (!frame || !*frame) break;
    const auto batch = data::arrow::ReadBatch(file, **frame, walker->schema());
    if (!batch) continue;
    for (const ArrayView& column : batch->columns) Touch(column);
  }
  return 0;
}
