#include "base/duration.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace muster {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(ParseDuration, ReadsEveryUnitFractionsAndSequences) {
  EXPECT_EQ(*ParseDuration("2h"), hours(2));
  EXPECT_EQ(*ParseDuration("30m"), minutes(30));
  EXPECT_EQ(*ParseDuration("1.5s"), milliseconds(1500));
  EXPECT_EQ(*ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(*ParseDuration("1h30m"), minutes(90));
  EXPECT_EQ(*ParseDuration("2d"), hours(48));
  EXPECT_EQ(*ParseDuration("1us1ns"), nanoseconds(1001));
  EXPECT_EQ(*ParseDuration("0s"), seconds(0));
  EXPECT_EQ(*ParseDuration("0.1s"), milliseconds(100));
}

TEST(ParseDuration, RefusesWhatIsNoDuration) {
  for (const char* text :
       {"", "2", "h", "-2h", "+2h", "2 h", "2h ", "2x", "1e3s", "nan", "2hours", ".5s", "1.s",
        "0x2s", "1h-3m", "999999999d", "9223372036854775808ns", "9223372036854775807ns1ns"}) {
    const auto duration = ParseDuration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_EQ(duration.error().code(), Code::kInvalid);
  }
  EXPECT_TRUE(ParseDuration("9223372036854775807ns"));
}

TEST(FormatExact, ReadsBackTheSame) {
  EXPECT_EQ(FormatExact(minutes(90)), "90m");
  EXPECT_EQ(FormatExact(milliseconds(1500)), "1500ms");
  EXPECT_EQ(FormatExact(nanoseconds(0)), "0s");
  EXPECT_EQ(FormatExact(hours(48)), "2d");
  Rng rng(7);
  for (int i = 0; i < 10'000; ++i) {
    const std::chrono::nanoseconds duration(
        static_cast<std::int64_t>(rng.Next64() >> (1 + rng.Below(60))));
    EXPECT_EQ(*ParseDuration(FormatExact(duration)), duration);
  }
}

TEST(FormatDuration, IsForPeople) {
  EXPECT_EQ(FormatDuration(nanoseconds(0)), "0 ns");
  EXPECT_EQ(FormatDuration(nanoseconds(850)), "850 ns");
  EXPECT_EQ(FormatDuration(microseconds(12'345)), "12.3 ms");
  EXPECT_EQ(FormatDuration(microseconds(999'900)), "1.00 s");
  EXPECT_EQ(FormatDuration(milliseconds(4200)), "4.20 s");
  EXPECT_EQ(FormatDuration(milliseconds(59'999)), "1m 00s");
  EXPECT_EQ(FormatDuration(seconds(185)), "3m 05s");
  EXPECT_EQ(FormatDuration(minutes(127)), "2h 07m");
  EXPECT_EQ(FormatDuration(hours(123)), "5d 03h");
  EXPECT_EQ(FormatDuration(seconds(-5)), "-5.00 s");
  EXPECT_EQ(FormatDuration(nanoseconds::max()), "106752d 00h");
  EXPECT_EQ(FormatDuration(nanoseconds::min()), "-106752d 00h");
}

}  // namespace
}  // namespace muster
