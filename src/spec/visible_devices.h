#pragma once
// CUDA_VISIBLE_DEVICES: which of a machine's GPUs a program sees, and in what order. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::spec {

/// How many of `present` GPUs a program sees with `list` as the variable; without it, all. As CUDA
/// reads it: entries from the first one that no GPU has are not seen.
std::uint32_t CountVisible(const std::optional<std::string>& list, std::uint32_t present);

/// The one device of each of `ranks`: the entries of `list` in their order, without it 0, 1, ….
/// Precondition when `list` has fewer.
Result<std::vector<std::string>> DevicesOf(const std::optional<std::string>& list,
                                           std::uint32_t ranks);

}  // namespace muster::spec
