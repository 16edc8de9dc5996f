#pragma once
// Sizes in bytes as a type, and spans of raw bytes. "4GiB", "512 KB" and "7" parse; FormatBytes
// prints the binary unit that keeps three digits ("1.50 GiB"), FormatExact keeps every byte.
// Values, any thread.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

struct Bytes {
  std::int64_t count = 0;
  auto operator<=>(const Bytes&) const = default;
};

constexpr Bytes operator""_KiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) << 10};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) << 20};
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) << 30};
}

/// Reads "4GiB", "1.5 MB", "512": a number and an optional decimal (KB MB GB TB) or binary (KiB …)
/// unit, no sign. Invalid when it is malformed or does not fit into 63 bits. Exact; a part of a
/// byte is rounded.
Result<Bytes> ParseBytes(std::string_view text);
/// "812 B", "1.50 GiB".
std::string FormatBytes(Bytes bytes);
/// "4GiB", "1025B": the shortest form that ParseBytes takes back to the same value.
std::string FormatExact(Bytes bytes);

inline ByteSpan AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace muster
