#include "base/clock.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(FormatUtc, PrintsMillisecondsRoundedDown) {
  EXPECT_EQ(FormatUtc(WallTime(seconds(0))), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatUtc(WallTime(milliseconds(1'795'988'294'123))), "2026-11-29T21:38:14.123Z");
  EXPECT_EQ(FormatUtc(WallTime(std::chrono::nanoseconds(-1))), "1969-12-31T23:59:59.999Z");
}

TEST(FakeClock, AdvancesBothTimes) {
  FakeClock clock;
  const Instant before = clock.Now();
  const WallTime wall = clock.Wall();
  clock.Advance(seconds(3));
  EXPECT_EQ(clock.Now() - before, seconds(3));
  EXPECT_EQ(clock.Wall() - wall, seconds(3));
}

TEST(SystemClock, NeverGoesBack) {
  Instant last = SystemClock().Now();
  for (int i = 0; i < 1000; ++i) {
    const Instant now = SystemClock().Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace muster
