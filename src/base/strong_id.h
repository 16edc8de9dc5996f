#pragma once
// Ids that do not convert into each other: StrongId<struct RankTag, std::uint32_t>. Values,
// ordered, hashable, printable by value().

#include <compare>
#include <cstdint>
#include <functional>

namespace muster {

template <typename Tag, typename Value>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Value value) : value_(value) {}
  constexpr Value value() const { return value_; }
  constexpr auto operator<=>(const StrongId&) const = default;

 private:
  Value value_{};
};

/// A training process, 0 … world − 1.
using Rank = StrongId<struct RankTag, std::uint32_t>;
/// One (re)start of the workers inside an attempt; 1 is the first. Issued by the coordinator only.
using Generation = StrongId<struct GenerationTag, std::uint64_t>;

}  // namespace muster

template <typename Tag, typename Value>
struct std::hash<muster::StrongId<Tag, Value>> {
  std::size_t operator()(muster::StrongId<Tag, Value> id) const noexcept {
    return std::hash<Value>{}(id.value());
  }
};
