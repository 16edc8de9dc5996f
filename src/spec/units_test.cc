#include "spec/units.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"

namespace muster::spec {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Durations, TakeEveryUnitAndSequences) {
  EXPECT_EQ(*ReadDuration("2h"), hours(2));
  EXPECT_EQ(*ReadDuration("30m"), minutes(30));
  EXPECT_EQ(*ReadDuration("1h30m"), minutes(90));
  EXPECT_EQ(*ReadDuration("1.5s"), milliseconds(1500));
  EXPECT_EQ(*ReadDuration("250ms"), milliseconds(250));
  EXPECT_EQ(*ReadDuration("0s"), seconds(0));
}

TEST(Durations, RefuseWhatIsNotOne) {
  for (const char* text : {"", "2", "h", "-2h", "+2h", "2 h", "2x", "1e3s", "nan", "inf", "2hours",
                           "999999999d", "1h-3m", ".5s", "0x2s"}) {
    EXPECT_FALSE(ReadDuration(text).has_value()) << text;
  }
}

TEST(Units, ReadBackWhatTheyPrint) {
  Rng rng(7);
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t n = static_cast<std::int64_t>(rng.Next64() >> (12 + rng.Below(50)));
    // Both readers go through a double, which is exact up to 2^53.
    EXPECT_EQ(ReadDuration(PrintDuration(Duration(n % (1LL << 51))))->count(), n % (1LL << 51));
    EXPECT_EQ(ParseBytes(PrintSize(Bytes{n}))->count, n);
    const std::uint64_t milli = static_cast<std::uint64_t>(n) % 1'000'000;
    EXPECT_EQ(ReadCores(PrintCores(milli)), milli);
  }
}

TEST(Cores, TakeWholePartsAndThousandths) {
  EXPECT_EQ(ReadCores("2"), 2000U);
  EXPECT_EQ(ReadCores("0.5"), 500U);
  EXPECT_EQ(ReadCores("250m"), 250U);
  for (const char* text : {"", "m", "-1", "0.0005", "1e3", "two", "0.5m", "99999999999"}) {
    EXPECT_EQ(ReadCores(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster::spec
