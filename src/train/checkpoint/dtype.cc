#include "train/checkpoint/dtype.h"

#include <array>

namespace muster::checkpoint {
namespace {

struct Traits {
  DType dtype;
  std::string_view name;
  std::uint64_t size;
};

constexpr std::array<Traits, 8> kTraits = {{{DType::kF32, "F32", 4},
                                            {DType::kF64, "F64", 8},
                                            {DType::kBf16, "BF16", 2},
                                            {DType::kF16, "F16", 2},
                                            {DType::kI32, "I32", 4},
                                            {DType::kI64, "I64", 8},
                                            {DType::kU8, "U8", 1},
                                            {DType::kBool, "BOOL", 1}}};

const Traits& TraitsOf(DType dtype) {
  for (const Traits& traits : kTraits) {
    if (traits.dtype == dtype) return traits;
  }
  CheckFailed(__FILE__, __LINE__, "dtype is one of the table");
}

}  // namespace

std::string_view NameOf(DType dtype) { return TraitsOf(dtype).name; }
std::uint64_t SizeOf(DType dtype) { return TraitsOf(dtype).size; }

Result<DType> ParseDType(std::string_view name) {
  for (const Traits& traits : kTraits) {
    if (traits.name == name) return traits.dtype;
  }
  return Error(Code::kInvalid, "dtype '" + std::string(name.substr(0, 32)) + "' is not known");
}

}  // namespace muster::checkpoint
