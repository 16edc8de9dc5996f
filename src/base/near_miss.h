#pragma once
// Which known word somebody meant who typed an unknown one: the one with the fewest edits
// (insert, delete, replace, swap of neighbours; optimal string alignment), letter case aside. For
// "did you mean" in errors. Pure.

#include <optional>
#include <span>
#include <string_view>

namespace muster {

/// The nearest of `known`, the first of equals; nothing when more than a third of `word` would
/// have to change. Words above 64 bytes match nothing.
std::optional<std::string_view> NearMiss(std::string_view word,
                                         std::span<const std::string_view> known);

}  // namespace muster
