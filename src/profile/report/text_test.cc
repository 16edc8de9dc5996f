#include "profile/report/text.h"

#include <gtest/gtest.h>

namespace muster::profile {
namespace {

TEST(EscapeHtml, LeavesNothingThatCouldBeMarkup) {
  EXPECT_EQ(EscapeHtml(R"(<a href="x" id='y'>&)"),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;");
}

TEST(PlainHtml, CutsWhatItIsAsHtmlAtWholeCharacters) {
  EXPECT_EQ(PlainHtml("a<b", 100), "a&lt;b");
  EXPECT_EQ(PlainHtml("<<<<", 8), "&lt;&lt;…");
  EXPECT_EQ(PlainHtml("aé", 2), "a…");
  EXPECT_EQ(PlainHtml("\x1b[31mred", 100), "red");
}

TEST(Formatting, ReadsAsAPersonWouldWriteIt) {
  EXPECT_EQ(FormatSeconds(0), "0 ms");
  EXPECT_EQ(FormatSeconds(0.0213), "21.3 ms");
  EXPECT_EQ(FormatSeconds(0.24), "240 ms");
  EXPECT_EQ(FormatSeconds(1.5), "1.50 s");
  EXPECT_EQ(FormatSeconds(41.23), "41.2 s");
  EXPECT_EQ(FormatSeconds(200), "3 min 20 s");
  EXPECT_EQ(FormatSeconds(7500), "2 h 5 min");
  EXPECT_EQ(FormatSeconds(200'000), "2 d 7 h");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1'234'567), "1,234,567");
  EXPECT_EQ(GroupThousands("-123456"), "-123,456");
}

TEST(Formatting, JoinsNumbersThatFollowEachOther) {
  EXPECT_EQ(Ranges({}), "");
  EXPECT_EQ(Ranges({7, 3, 1, 2}), "1–3, 7");
  EXPECT_EQ(Ranges({4, 3}), "3, 4");
  EXPECT_EQ(Ranges({1, 3, 5, 7}, 2), "1, 3, …");
}

TEST(GoodputInWords, SaysFromWhereItCountsWhenAFaultCameBefore) {
  EXPECT_EQ(GoodputInWords(0.9534, false), "goodput 95.3 %");
  EXPECT_EQ(GoodputInWords(1, true), "goodput 100.0 % from the first step on");
}

}  // namespace
}  // namespace muster::profile
