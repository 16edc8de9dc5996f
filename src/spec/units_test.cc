#include "spec/units.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace muster::spec {
namespace {

TEST(Cores, ReadBackWhatTheyPrint) {
  Rng rng(7);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t milli = rng.Below(1'000'000'000);
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
