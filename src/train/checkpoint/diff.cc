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

void Compare(ByteSpan a, ByteSpan b, DType dtype, TensorDifference& difference) {
  const std::uint64_t size = SizeOf(dtype);
  for (std::size_t at = 0; at < a.size(); at += size) {
    if (std::memcmp(a.data() + at, b.data() + at, size) == 0) continue;
    const Element x = ElementAt(a.data() + at, dtype);
    const Element y = ElementAt(b.data() + at, dtype);
    ++difference.unequal;
    const double distance = std::abs(x.value - y.value);
    // A NaN sticks: nothing is greater than it.
    if (std::isnan(distance) || distance > difference.max_abs) difference.max_abs = distance;
    const std::int64_t high = std::max(x.place, y.place);
    const std::int64_t low = std::min(x.place, y.place);
    difference.max_ulp = std::max(
        difference.max_ulp, static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low));
  }
}

Status RequireEqualTensors(const std::vector<TensorRef>& a, const std::vector<TensorRef>& b) {
  const auto differ = [](const std::string& what) {
    return Error(Code::kPrecondition, "the checkpoints hold other tensors: " + what,
                 "muster ckpt show lists the tensors of each");
  };
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size()) return differ("only the second has '" + b[i].entry->name + "'");
    if (i >= b.size()) return differ("only the first has '" + a[i].entry->name + "'");
    if (a[i].group != b[i].group || a[i].entry->name != b[i].entry->name)
      return differ("'" + a[i].entry->name + "' against '" + b[i].entry->name + "'");
    if (a[i].dtype != b[i].dtype || a[i].entry->shape != b[i].entry->shape)
      return differ("'" + a[i].entry->name + "' has another dtype or shape");
  }
  return Ok();
}

Result<TensorDifference> DiffTensor(Checkpoint& a, Checkpoint& b, const TensorRef& tensor) {
  TensorDifference difference{
      .group = tensor.group, .name = tensor.entry->name, .elements = tensor.entry->length};
  std::vector<std::byte> other;
  std::uint64_t at = 0;
  MUSTER_TRY(ForEachPiece(a, tensor, [&](ByteSpan piece) -> Status {
    other.resize(piece.size());
    MUSTER_TRY(b.Read(tensor.group, tensor.entry->name, at, other));
    Compare(piece, other, tensor.dtype, difference);
    at += piece.size() / SizeOf(tensor.dtype);
    return Ok();
  }));
  return difference;
}

}  // namespace

Result<std::vector<TensorDifference>> Diff(Checkpoint& a, Checkpoint& b, Scope scope) {
  const std::vector<TensorRef> tensors = TensorsOf(a.manifest(), scope);
  MUSTER_TRY(RequireEqualTensors(tensors, TensorsOf(b.manifest(), scope)));
  std::vector<TensorDifference> differences;
  for (const TensorRef& tensor : tensors)
    differences.push_back(MUSTER_TRY(DiffTensor(a, b, tensor)));
  return differences;
}

}  // namespace muster::checkpoint
