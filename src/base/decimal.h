#pragma once
// A decimal number times a unit in integers: sizes and durations are read without the rounding of
// floating point, so that what is printed reads back as the same value. Pure.

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

/// Cuts a number ("12", "1.5"; digits, perhaps a point and more digits; no sign, exponent or blank)
/// off `text` and returns it times `unit`, rounded to nearest. Nothing, and `text` unchanged, when
/// there is none, when it has more than 18 digits behind the point, or when the product is above
/// 2^63 − 1.
std::optional<std::int64_t> TakeScaled(std::string_view& text, std::int64_t unit);

/// The length of the number at the start of `text`, for who must see the unit behind it first.
std::size_t NumberLength(std::string_view text);

}  // namespace muster
