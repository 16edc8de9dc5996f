#pragma once
// bf16 and f16 to and from fp32, rounding to nearest even. Integer and select arithmetic only, so
// that a compiler vectorises it and every instruction set gives the same bits (IEEE 754-2008; a NaN
// stays a quiet NaN with the upper bits of its payload).

#include <bit>
#include <cstdint>

namespace muster {

[[gnu::always_inline]] inline float FloatFromBf16(std::uint16_t h) {
  return std::bit_cast<float>(std::uint32_t{h} << 16);
}

[[gnu::always_inline]] inline std::uint16_t Bf16FromFloat(float f) {
  const std::uint32_t x = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (x >> 16) | 0x40u;
  return static_cast<std::uint16_t>((x & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

[[gnu::always_inline]] inline float FloatFromF16(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t{h & 0x8000u} << 16;
  const std::uint32_t rest = h & 0x7fffu;
  const std::uint32_t normal = (rest << 13) + 0x38000000u;
  const std::uint32_t special = (rest << 13) | 0x7f800000u | (rest > 0x7c00u ? 0x00400000u : 0u);
  const std::uint32_t tiny =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-24f);
  const std::uint32_t magnitude = rest >= 0x7c00u ? special : (rest < 0x400u ? tiny : normal);
  return std::bit_cast<float>(sign | magnitude);
}

[[gnu::always_inline]] inline std::uint16_t F16FromFloat(float f) {
  const std::uint32_t x = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t sign = (x >> 16) & 0x8000u;
  const std::uint32_t rest = x & 0x7fffffffu;
  const std::uint32_t biased = rest - 0x38000000u;
  const std::uint32_t normal = (biased + 0xfffu + ((biased >> 13) & 1u)) >> 13;
  // Adding 0.5 puts the last bit of an f16 subnormal at the last bit of the sum's mantissa.
  const std::uint32_t tiny =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000u;
  const std::uint32_t special = rest > 0x7f800000u ? (0x7e00u | ((rest >> 13) & 0x3ffu)) : 0x7c00u;
  const std::uint32_t magnitude =
      rest >= 0x47800000u ? special : (rest < 0x38800000u ? tiny : normal);
  return static_cast<std::uint16_t>(sign | magnitude);
}

}  // namespace muster
