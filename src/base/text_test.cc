#include "base/text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(IsUtf8, TellsTextFromBytes) {
  EXPECT_TRUE(IsUtf8("Grüße 🎈"));
  for (const std::string_view bad :
       {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST(CutText, KeepsWholeCharactersAndMarksTheCut) {
  EXPECT_EQ(CutText("abc", 3), "abc");
  EXPECT_EQ(CutText("abcd", 3), "abc…");
  EXPECT_EQ(CutText("aé", 2), "a…");
  EXPECT_EQ(CutText("a\xC3(\xFF", 100), "a\uFFFD(\uFFFD");
}

TEST(PlainText, TakesTerminalSequencesAndControlsOut) {
  EXPECT_EQ(PlainText("\x1b[31mred\x1b[0m"), "red");
  EXPECT_EQ(PlainText("\x1b]0;title\x07x"), "x");
  EXPECT_EQ(PlainText("\x1b]8;;http://x\x1b\\link"), "link");
  EXPECT_EQ(PlainText("a\r\nb\nprogress 1\rdone"), "a\nb\ndone");
  EXPECT_EQ(PlainText(std::string_view("a\0b\x7f", 4)), "a\uFFFDb\uFFFD");
  EXPECT_EQ(PlainText("\x1b"), "\uFFFD");
  EXPECT_EQ(PlainText("\x1b["), "");
}

TEST(PlainText, TakesEightBitControlsOutAndLeavesLetters) {
  EXPECT_EQ(PlainText("a\u009b31mb\u0085c\u00a0d\u00e9"), "a\uFFFD31mb\uFFFDc\u00a0d\u00e9");
  EXPECT_EQ(PlainText("\x9b"
                      "31m"),
            "\uFFFD31m");
}

TEST(PlainLine, KeepsOneValueOnOneLine) {
  EXPECT_EQ(PlainLine("a\nb\tc\r\nd\re\x1b[2K"), "a b c  d e");
}

TEST(Counted, HasAPluralForAllButOne) {
  EXPECT_EQ(Counted(0, "shard"), "0 shards");
  EXPECT_EQ(Counted(1, "shard"), "1 shard");
  EXPECT_EQ(Counted(2, "shard"), "2 shards");
  EXPECT_EQ(Counted(1'234'567, "shard"), "1,234,567 shards");
  EXPECT_EQ(Counted(1, "class", "es"), "1 class");
  EXPECT_EQ(Counted(3, "class", "es"), "3 classes");
}

}  // namespace
}  // namespace muster
