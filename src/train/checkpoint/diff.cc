#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "train/checkpoint/digest.h"
#include "train/checkpoint/tensors.h"

namespace muster::checkpoint {
namespace {

/// An element as a value and as its place among the values of its type, so that neighbours differ
/// by one.
struct Element {
  double value = 0;
  std::int64_t place = 0;
};

/// Sign-magnitude bits → a line of integers; +0 and −0 are one place.
std::int64_t PlaceOf(std::uint64_t bits, int width) {
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  const auto magnitude = static_cast<std::int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

Element ElementAt(const std::byte* at, DType dtype) {
  switch (dtype) {
    case DType::kF32: {
      const auto value = Load<float>(at);
      return {value, PlaceOf(std::bit_cast<std::uint32_t>(value), 32)};
    }
    case DType::kF64: {
      const auto value = Load<double>(at);
      return {value, PlaceOf(std::bit_cast<std::uint64_t>(value), 64)};
    }
    case DType::kBf16: {
      const auto bits = Load<std::uint16_t>(at);
      return {FloatFromBf16(bits), PlaceOf(bits, 16)};
    }
    case DType::kF16: {
      const auto bits = Load<std::uint16_t>(at);
      return {FloatFromF16(bits), PlaceOf(bits, 16)};
    }
    case DType::kI32: {
      const auto value = Load<std::int32_t>(at);
      return {static_cast<double>(value), value};
    }
    case DType::kI64: {
      const auto value = Load<std::int64_t>(at);
      return {static_cast<double>(value), value};
    }
    case DType::kU8:
    case DType::kBool: {
      const auto value = Load<std::uint8_t>(at);
      return {static_cast<double>(value), value};
    }
  }
  return {};
}

/// A NaN is further away than any number.
bool IsFurther(double distance, double furthest) {
  return !std::isnan(furthest) && (std::isnan(distance) || distance > furthest);
}

/// `first` is the number of the first element of both pieces in their tensor.
void Compare(ByteSpan a, ByteSpan b, DType dtype, std::uint64_t first,
             TensorDifference& difference) {
  const std::uint64_t size = SizeOf(dtype);
  for (std::size_t at = 0; at < a.size(); at += size) {
    if (std::memcmp(a.data() + at, b.data() + at, size) == 0) continue;
    const Element x = ElementAt(a.data() + at, dtype);
    const Element y = ElementAt(b.data() + at, dtype);
    const double distance = std::abs(x.value - y.value);
    if (difference.unequal++ == 0 || IsFurther(distance, difference.max_abs)) {
      difference.max_abs = distance;
      difference.max_at = first + at / size;
    }
    const std::int64_t high = std::max(x.place, y.place);
    const std::int64_t low = std::min(x.place, y.place);
    difference.max_ulp = std::max(
        difference.max_ulp, static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low));
  }
}

Result<TensorDifference> DiffTensor(Checkpoint& a, Checkpoint& b, const TensorRef& tensor) {
  TensorDifference difference{
      .group = tensor.group, .name = tensor.entry->name, .elements = tensor.entry->length};
  std::vector<std::byte> other;
  std::uint64_t at = 0;
  MUSTER_TRY(ForEachPiece(a, tensor, [&](ByteSpan piece) -> Status {
    other.resize(piece.size());
    MUSTER_TRY(b.Read(tensor.group, tensor.entry->name, at, other));
    Compare(piece, other, tensor.dtype, at, difference);
    at += piece.size() / SizeOf(tensor.dtype);
    return Ok();
  }));
  return difference;
}

TensorName NameOf(const TensorRef& tensor) {
  return {.group = tensor.group, .name = tensor.entry->name};
}

bool IsAlike(const TensorRef& a, const TensorRef& b) {
  return a.dtype == b.dtype && a.entry->shape == b.entry->shape;
}

/// Nothing where only the other checkpoint has the group.
Result<std::vector<TensorRef>> TensorsOrNone(const Checkpoint& checkpoint, std::string_view group,
                                             const Checkpoint& other) {
  auto tensors = TensorsOf(checkpoint.manifest(), group);
  if (!tensors && TensorsOf(other.manifest(), group)) return std::vector<TensorRef>{};
  return tensors;
}

}  // namespace

bool Difference::BitwiseEqual() const {
  return unlike.empty() && only_a.empty() && only_b.empty() &&
         std::ranges::all_of(tensors, [](const auto& tensor) { return tensor.unequal == 0; });
}

Result<Difference> Diff(Checkpoint& a, Checkpoint& b, std::string_view group) {
  const std::vector<TensorRef> all_a = MUSTER_TRY(TensorsOrNone(a, group, b));
  const std::vector<TensorRef> all_b = MUSTER_TRY(TensorsOrNone(b, group, a));
  Difference difference;
  auto in_a = all_a.begin();
  auto in_b = all_b.begin();
  while (in_a != all_a.end() || in_b != all_b.end()) {
    if (in_b == all_b.end() || (in_a != all_a.end() && IsBefore(*in_a, *in_b))) {
      difference.only_a.push_back(NameOf(*in_a++));
    } else if (in_a == all_a.end() || IsBefore(*in_b, *in_a)) {
      difference.only_b.push_back(NameOf(*in_b++));
    } else {
      if (IsAlike(*in_a, *in_b))
        difference.tensors.push_back(MUSTER_TRY(DiffTensor(a, b, *in_a)));
      else
        difference.unlike.push_back(NameOf(*in_a));
      ++in_a;
      ++in_b;
    }
  }
  return difference;
}

}  // namespace muster::checkpoint
