#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace muster {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Error(Code::kInvalid, "odd");
  return n / 2;
}
Result<int> Quarter(int n) { return MUSTER_TRY(Half(MUSTER_TRY(Half(n)))); }
Status CheckEven(int n) {
  MUSTER_TRY(Half(n));
  return Ok();
}
Result<std::unique_ptr<int>> Box(int n) { return std::make_unique<int>(MUSTER_TRY(Half(n))); }

TEST(Result, TryReturnsTheFirstError) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).error().message(), "odd");
  EXPECT_EQ(Quarter(5).error().message(), "odd");
}

TEST(Result, TryWorksForStatusAndMoveOnlyValues) {
  EXPECT_TRUE(CheckEven(2));
  EXPECT_FALSE(CheckEven(3));
  EXPECT_EQ(**Box(8), 4);
  EXPECT_FALSE(Box(1));
}

TEST(Result, WithinAddsThePlaceToAnErrorOnly) {
  EXPECT_EQ(*Within("halve", Half(4)), 2);
  EXPECT_EQ(Within("halve", Half(3)).error().message(), "halve: odd");
  EXPECT_EQ(Within("check", CheckEven(3)).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace muster
