// The small readers behind the importers.
#include <gtest/gtest.h>

#include "spec/import/quantity.h"
#include "spec/import/shell_words.h"

namespace muster::spec {
namespace {

using Words = std::vector<std::string>;

TEST(Quantity, ReadsWhatKubernetesWrites) {
  EXPECT_EQ(ReadQuantityMilli("8"), 8000U);
  EXPECT_EQ(ReadQuantityMilli("500m"), 500U);
  EXPECT_EQ(ReadQuantityMilli("0.5"), 500U);
  EXPECT_EQ(ReadQuantityMilli("1.0005"), 1001U);  // rounded up
  EXPECT_EQ(ReadQuantityMilli("100u"), 1U);
  EXPECT_EQ(ReadQuantityBytes("32000Mi")->count, 32000LL << 20);
  EXPECT_EQ(ReadQuantityBytes("1.5Gi")->count, 3LL << 29);
  EXPECT_EQ(ReadQuantityBytes("5G")->count, 5'000'000'000);
  EXPECT_EQ(ReadQuantityBytes("1e3")->count, 1000);
  EXPECT_EQ(ReadQuantityBytes("12E-1")->count, 2);
  EXPECT_EQ(ReadQuantityBytes("0")->count, 0);
}

TEST(Quantity, RefusesEverythingElse) {
  for (const char* text :
       {"", ".", "-1", "+1", "1 Gi", "1GiB", "1gi", "Mi", "1.2.3", "0x10", "nan", "1e", "1e99",
        "9223372036854775808", "9999999999999999999Pi", "1K", "12345678901234567890"}) {
    EXPECT_FALSE(ReadQuantityBytes(text)) << text;
    EXPECT_FALSE(ReadQuantityMilli(text)) << text;
  }
}

TEST(SimpleCommand, TakesOneCommandApart) {
  EXPECT_EQ(SimpleCommand("exec torchrun --x=1 train.py", {}),
            (Words{"torchrun", "--x=1", "train.py"}));
  EXPECT_EQ(SimpleCommand("a 'b c' \"d \\\" $X\" e\\ f \\\n  ${X}g ''", {{"X", "1"}}),
            (Words{"a", "b c", "d \" 1", "e f", "1g", ""}));
  EXPECT_EQ(SimpleCommand("\n  python train.py\n\n", {}), (Words{"python", "train.py"}));
}

TEST(SimpleCommand, LeavesEverythingElseAlone) {
  for (const char* script : {"",      "exec",     "a; b",  "a && b", "a\nb",       "a | b", "a > b",
                             "$(a)",  "\"$(a)\"", "`a`",   "a *",    "a $UNKNOWN", "a 'b",  "a \"b",
                             "a ${X", "a \\",     "( a )", "a # b",  "~/a",        "a $W"}) {
    EXPECT_FALSE(SimpleCommand(script, {{"X", "1"}, {"W", "two words"}})) << script;
  }
}

}  // namespace
}  // namespace muster::spec
