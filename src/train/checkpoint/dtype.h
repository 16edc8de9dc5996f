#pragma once
// Element types of tensors as checkpoints name them: the spelling of safetensors ("F32", "BF16").
// Values, any thread.

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace muster::checkpoint {

enum class DType { kF32, kF64, kBf16, kF16, kI32, kI64, kU8, kBool };

std::string_view NameOf(DType dtype);             ///< "F32"
std::uint64_t SizeOf(DType dtype);                ///< bytes of one element
Result<DType> ParseDType(std::string_view name);  ///< Invalid for a name we do not store

}  // namespace muster::checkpoint
