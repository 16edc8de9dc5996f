#include "spec/visible_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::spec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(VisibleDevices, AreCountedAsCudaCountsThem) {
  EXPECT_EQ(CountVisible(std::nullopt, 8), 8U);
  EXPECT_EQ(CountVisible("0, 3", 8), 2U);
  EXPECT_EQ(CountVisible("3,8,1", 8), 1U);
  EXPECT_EQ(CountVisible("", 8), 0U);
  EXPECT_EQ(CountVisible("-1", 8), 0U);
  EXPECT_EQ(CountVisible("GPU-5f,GPU-6a", 8), 2U);
}

TEST(VisibleDevices, AreGivenToRanksInTheirOrder) {
  EXPECT_THAT(*DevicesOf(std::nullopt, 2), ElementsAre("0", "1"));
  EXPECT_THAT(*DevicesOf("5, 2,7", 2), ElementsAre("5", "2", "7"));
  EXPECT_THAT(DevicesOf("5", 2).error().message(), HasSubstr("too few for 2 ranks"));
}

}  // namespace
}  // namespace muster::spec
