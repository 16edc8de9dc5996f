#include "agent/coordinator/fault_sentence.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

TEST(FaultSentence, SaysWhatComesAgainOnceAndHowOften) {
  const struct {
    std::string before;
    std::string after;
  } cases[] = {{"", "A"},
               {"A", "A, twice"},
               {"A, twice", "A, 3 times"},
               {"A, 3 times", "A, 4 times"},
               {"A, 99 times", "A, 100 times"},
               {"B", "B, then A"},
               {"B, then A", "B, then A, twice"},
               {"A, twice, then B", "A, twice, then B, then A"},
               {"A, then B, twice", "A, then B, twice, then A"},
               {"not A", "not A, then A"},
               {"A, at times", "A, at times, then A"},
               {std::string(301, 'x'), "several faults, at last A"},
               {"several faults, at last A", "several faults, at last A, twice"}};
  for (const auto& c : cases) EXPECT_EQ(WithFault(c.before, "A"), c.after) << c.before;
}

TEST(FaultSentence, TellsWhetherItIsOfOneKindOnly) {
  EXPECT_TRUE(IsOnly("A", "A"));
  EXPECT_TRUE(IsOnly("A", "A, twice"));
  EXPECT_TRUE(IsOnly("A", "A, 12 times"));
  EXPECT_FALSE(IsOnly("A", "B, then A"));
  EXPECT_FALSE(IsOnly("A", "A; 1 rank kept"));
}

}  // namespace
}  // namespace muster::agent
