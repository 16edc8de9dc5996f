#include "base/near_miss.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace muster {
namespace {

constexpr std::array<std::string_view, 5> kKnown{"priority", "queue", "nodes", "ranksPerNode",
                                                 "every"};

TEST(NearMiss, FindsSwappedMissingAndExtraLetters) {
  EXPECT_EQ(NearMiss("prioirty", kKnown), "priority");
  EXPECT_EQ(NearMiss("priorty", kKnown), "priority");
  EXPECT_EQ(NearMiss("nodess", kKnown), "nodes");
  EXPECT_EQ(NearMiss("evry", kKnown), "every");
}

TEST(NearMiss, ForgivesLetterCase) {
  EXPECT_EQ(NearMiss("RANKSPERNODE", kKnown), "ranksPerNode");
  EXPECT_EQ(NearMiss("ranks_per_node", kKnown), "ranksPerNode");
}

TEST(NearMiss, KeepsSilentWhenNothingIsNear) {
  EXPECT_EQ(NearMiss("colour", kKnown), std::nullopt);
  EXPECT_EQ(NearMiss("", kKnown), std::nullopt);
  EXPECT_EQ(NearMiss(std::string(65, 'q'), kKnown), std::nullopt);
  EXPECT_EQ(NearMiss("queue", {}), std::nullopt);
}

}  // namespace
}  // namespace muster
