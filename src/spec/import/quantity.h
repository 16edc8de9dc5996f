#pragma once
// Kubernetes' quantities ("500m", "32000Mi", "1e3", "5G") as cores and bytes. Source: the grammar
// of resource.Quantity in Kubernetes' API conventions. Exact: what is no whole number of
// thousandths, or of bytes, is rounded up, as Kubernetes does. Internal to src/spec; pure.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"

namespace muster::spec {

/// In thousandths; nothing when it is malformed, negative or does not fit.
std::optional<std::uint64_t> ReadQuantityMilli(std::string_view text);
/// The same as a number of bytes.
std::optional<Bytes> ReadQuantityBytes(std::string_view text);

}  // namespace muster::spec
