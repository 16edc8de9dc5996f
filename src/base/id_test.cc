#include "base/id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace muster {
namespace {

TEST(SystemIds, AreDifferentAndSpellable) {
  std::set<std::string> seen;
  std::set<char> letters;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = SystemIds().Next(10);
    EXPECT_EQ(id.size(), 10u);
    letters.insert(id.begin(), id.end());
    seen.insert(id);
  }
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_EQ(letters.size(), 32u);  // 10,000 draws miss one of 32 with probability 10^-136
  for (const char confusing : std::string("ilou")) EXPECT_FALSE(letters.contains(confusing));
}

TEST(FillRandom, FillsEveryByte) {
  std::vector<std::byte> bytes(4096);
  FillRandom(bytes);
  std::set<std::byte> values(bytes.begin(), bytes.end());
  EXPECT_GT(values.size(), 250u);
  FillRandom({});
}

}  // namespace
}  // namespace muster
