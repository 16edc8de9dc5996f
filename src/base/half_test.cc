#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster {
namespace {

/// IEEE binary16 by its definition, not by bits.
double F16Value(std::uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const double mantissa = h & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, ReadsEveryF16AsItsDefinitionSays) {
  for (std::uint32_t h = 0; h < 0x10000; ++h) {
    const float f = FloatFromF16(static_cast<std::uint16_t>(h));
    if ((h & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(f)) << h;
    } else if ((h & 0x7fff) == 0x7c00) {
      EXPECT_TRUE(std::isinf(f)) << h;
    } else {
      EXPECT_EQ(f, F16Value(static_cast<std::uint16_t>(h))) << h;
      EXPECT_EQ(F16FromFloat(f), h);
    }
  }
}

TEST(Half, RoundsToTheNearestF16TiesToEven) {
  for (std::uint32_t h = 0; h < 0x7bff; ++h) {
    const auto low = static_cast<std::uint16_t>(h);
    const double a = F16Value(low);
    const double b = F16Value(static_cast<std::uint16_t>(h + 1));
    const auto middle = static_cast<float>((a + b) / 2);
    const std::uint32_t even = h % 2 == 0 ? h : h + 1;
    EXPECT_EQ(F16FromFloat(middle), even) << h;
    EXPECT_EQ(F16FromFloat(std::nextafter(middle, 0.0f)), h);
    EXPECT_EQ(F16FromFloat(std::nextafter(middle, 1e9f)), h + 1);
  }
  EXPECT_EQ(F16FromFloat(65519.996f), 0x7bff);
  EXPECT_EQ(F16FromFloat(65520.0f), 0x7c00);
  EXPECT_EQ(F16FromFloat(-1e30f), 0xfc00);
}

TEST(Half, RoundsToTheNearestBf16AndKeepsNan) {
  EXPECT_EQ(Bf16FromFloat(1.0f), 0x3f80);
  EXPECT_EQ(Bf16FromFloat(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie, even below
  EXPECT_EQ(Bf16FromFloat(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie, even above
  EXPECT_EQ(Bf16FromFloat(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(Bf16FromFloat(std::bit_cast<float>(0x7f800001u)), 0x7fc0);
  EXPECT_EQ(Bf16FromFloat(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace muster
