#pragma once
// DatasetId names the content of one split: XXH3-128 over the digests of its shards in order
// (docs/formats/dataset.md). Checkpoints and caches carry it, so that a position is never applied
// to other rows. A set without a manifest has an id made of its shards' names, sizes and batch
// layout. Value.

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::data {

struct DatasetId {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const DatasetId&) const = default;

  /// 32 lower-case hexadecimal digits.
  std::string Hex() const;
  static Result<DatasetId> Parse(std::string_view hex);
};

}  // namespace muster::data
