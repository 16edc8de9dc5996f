#pragma once
// The ranks of one node: they follow one another. A value.

#include <cstdint>

#include "base/strong_id.h"

namespace muster::agent {

struct RankRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  bool Has(Rank rank) const { return rank.value() >= first && rank.value() - first < count; }
  std::uint32_t IndexOf(Rank rank) const { return rank.value() - first; }  ///< of one that it has
  Rank At(std::uint32_t index) const { return Rank(first + index); }
  bool operator==(const RankRange&) const = default;
};

}  // namespace muster::agent
