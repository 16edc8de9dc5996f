#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(Crc32c, GivesTheValuesOfRfc3720) {
  EXPECT_EQ(Crc32c(AsBytes("123456789")), 0xe3069283u);
  EXPECT_EQ(Crc32c(AsBytes(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(Crc32c({}), 0u);
}

TEST(Crc32c, GoesOnFromTheSumOfWhatCameBefore) {
  EXPECT_EQ(Crc32c(AsBytes("56789"), Crc32c(AsBytes("1234"))), 0xe3069283u);
  EXPECT_EQ(Crc32c({}, 7u), 7u);
}

}  // namespace
}  // namespace muster
