#include "base/bytes.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"

namespace muster {
namespace {

TEST(ParseBytes, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(ParseBytes("4GiB")->count, 4LL << 30);
  EXPECT_EQ(ParseBytes("1.5 MB")->count, 1'500'000);
  EXPECT_EQ(ParseBytes("0")->count, 0);
  EXPECT_EQ(ParseBytes("512")->count, 512);
  EXPECT_EQ(ParseBytes("0.5KiB")->count, 512);
  EXPECT_EQ(ParseBytes("1.3 B")->count, 1);
}

TEST(ParseBytes, IsExactUpTo63Bits) {
  EXPECT_EQ(ParseBytes("9223372036854775807")->count, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(ParseBytes("9007199254740993")->count, 9007199254740993);  // 2^53 + 1
  EXPECT_FALSE(ParseBytes("9223372036854775808"));
  EXPECT_FALSE(ParseBytes("8192PiB"));
  EXPECT_EQ(ParseBytes("8191PiB")->count, 8191LL << 50);
}

TEST(ParseBytes, RefusesWhatIsNoSize) {
  for (const char* text : {"",
                           " ",
                           "-1",
                           "-0",
                           "+1",
                           "4 gib",
                           "GiB",
                           "1e3",
                           "0x10",
                           "inf",
                           "nan",
                           "1.",
                           ".5",
                           "1..5",
                           "1.5.5",
                           " 1",
                           "1 ",
                           "1 GiB ",
                           "1\n",
                           "99999999999999999999",
                           "1.0000000000000000000001 KB"}) {
    const auto size = ParseBytes(text);
    ASSERT_FALSE(size) << "'" << text << "'";
    EXPECT_EQ(size.error().code(), Code::kInvalid);
  }
}

TEST(FormatBytes, KeepsThreeDigits) {
  EXPECT_EQ(FormatBytes(Bytes{0}), "0 B");
  EXPECT_EQ(FormatBytes(Bytes{999}), "999 B");
  EXPECT_EQ(FormatBytes(Bytes{1000}), "0.98 KiB");
  EXPECT_EQ(FormatBytes(Bytes{999 * 1024}), "999 KiB");
  EXPECT_EQ(FormatBytes(Bytes{999 * 1024 + 700}), "0.98 MiB");
  EXPECT_EQ(FormatBytes(1536_MiB), "1.50 GiB");
  EXPECT_EQ(FormatBytes(Bytes{10'236}), "10.0 KiB");
  EXPECT_EQ(FormatBytes(100_GiB), "100 GiB");
  EXPECT_EQ(FormatBytes(Bytes{-2048}), "-2.00 KiB");
}

TEST(FormatExact, ReadsBackAsTheSameSize) {
  EXPECT_EQ(FormatExact(Bytes{0}), "0B");
  EXPECT_EQ(FormatExact(4_GiB), "4GiB");
  EXPECT_EQ(FormatExact(Bytes{1025}), "1025B");
  EXPECT_EQ(FormatExact(Bytes{std::int64_t{8191} << 50}), "8191PiB");
  Rng rng(7);
  for (int i = 0; i < 10'000; ++i) {
    const auto n = static_cast<std::int64_t>(rng.Next64() >> (1 + rng.Below(62)));
    EXPECT_EQ(ParseBytes(FormatExact(Bytes{n}))->count, n);
  }
}

}  // namespace
}  // namespace muster
