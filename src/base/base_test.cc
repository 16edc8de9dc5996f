#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/durable.h"
#include "base/result.h"
#include "base/rng.h"

namespace muster {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Error(Code::kInvalid, "odd");
  return n / 2;
}
Result<int> Quarter(int n) { return MUSTER_TRY(Half(MUSTER_TRY(Half(n)))); }

TEST(Result, TryReturnsTheFirstError) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).error().message(), "odd");
}

TEST(ParseBytes, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(ParseBytes("4GiB")->count, 4LL << 30);
  EXPECT_EQ(ParseBytes("1.5 MB")->count, 1500000);
  EXPECT_FALSE(ParseBytes("-1"));
  EXPECT_FALSE(ParseBytes("4 gib"));
}

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(Philox(0, {0, 0, 0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~0ull, {~0u, ~0u, ~0u, ~0u}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(ParentOf, HandlesRootsAndTrailingSlashes) {
  EXPECT_EQ(ParentOf("a/b/c"), "a/b");
  EXPECT_EQ(ParentOf("c"), ".");
  EXPECT_EQ(ParentOf("/c"), "/");
  EXPECT_EQ(NameOf("a/b/"), "b");
}

}  // namespace
}  // namespace muster
