#include "spec/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace muster::spec {
namespace {

using testing::HasSubstr;

Pattern Compiled(std::string_view text) {
  auto pattern = Pattern::Compile(text);
  EXPECT_TRUE(pattern.has_value()) << text;
  return *std::move(pattern);
}

TEST(Pattern, IsFoundAnywhereInALine) {
  EXPECT_TRUE(Compiled("loss").IsIn("step 1 loss 2"));
  EXPECT_FALSE(Compiled("^loss").IsIn("step 1 loss 2"));
  EXPECT_FALSE(Compiled("loss").IsIn(""));
}

TEST(Pattern, GivesItsFirstGroup) {
  const Pattern pattern = Compiled("a|b=(\\d*)");
  std::optional<std::string_view> group;
  EXPECT_TRUE(pattern.Find("b=12", group));
  EXPECT_EQ(group, "12");
  EXPECT_TRUE(pattern.Find("b=", group));
  EXPECT_EQ(group, "");
  EXPECT_TRUE(pattern.Find("a", group));
  EXPECT_EQ(group, std::nullopt);
  EXPECT_FALSE(Compiled("(?:a|b)").has_group());
}

TEST(Pattern, CrossesBytesOfEveryKind) {
  using std::string_view_literals::operator""sv;
  EXPECT_TRUE(Compiled("a.*b").IsIn("a\0\xff\r\x80 b"sv));
  EXPECT_TRUE(Compiled("é+").IsIn("caf\xc3\xa9"));
  EXPECT_TRUE(Compiled("\\pL=1").IsIn("\xc3\xa9=1"));
}

TEST(Pattern, NamesWhatRe2DoesNotHave) {
  const auto why = [](std::string_view text) {
    const auto pattern = Pattern::Compile(text);
    return pattern ? std::string("compiled") : pattern.error().message();
  };
  EXPECT_THAT(why("a(?=b)"), HasSubstr("look-ahead '(?='"));
  EXPECT_THAT(why("a(?!b)"), HasSubstr("look-ahead '(?!'"));
  EXPECT_THAT(why("(?<=a)b"), HasSubstr("look-behind '(?<='"));
  EXPECT_THAT(why("(?<!a)b"), HasSubstr("look-behind '(?<!'"));
  EXPECT_THAT(why("(a)\\1"), HasSubstr("a reference back to a group, '\\1'"));
  EXPECT_THAT(why("("), HasSubstr("missing )"));
  EXPECT_THAT(why(std::string(Pattern::kMostBytes + 1, 'a')), HasSubstr("4097 bytes"));
}

TEST(RequiredLiteral, IsTheLongestTextThatEveryMatchHolds) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"loss=(\\S+)", "loss="},
      {".*\\[Epoch 0 Batch \\d+.*'training_loss_step': (\\d+(\\.\\d+)?).*",
       "'training_loss_step': "},
      {"abc?de", "ab"},
      {"ab+cd", "ab"},
      {"abc{2}d", "ab"},
      {"a|b", ""},
      {"(abc|def)gh", "gh"},
      {"(?:abc)?de", "de"},
      {"(?i)loss", ""},
      {"(?i:loss)", ""},
      {"x[a)(]yz", "yz"},
      {"[]x]yz", "yz"},
      {"[[:alpha:])]yz", "yz"},
      {"\\d\\.\\[ab", ".[ab"},
      {"\\x41bcdef", ""},
      {"a\\Q*b\\E", ""},
      {"z", ""},
      {"a{x|y}", ""},
  };
  for (const auto& [pattern, literal] : cases)
    EXPECT_EQ(RequiredLiteral(pattern), literal) << pattern;
}

// The filter must never hide a line that RE2 would find: random patterns over few letters, random
// lines over the same.
TEST(RequiredLiteral, IsInEveryLineThatMatches) {
  constexpr std::string_view kPieces[] = {
      "a",    "b",    "ab", ".", "*", "+",   "?",   "(a", ")",    "[a",  "]",         "|",   "\\",
      "(?:b", "{1,2", "}",  "^", "$", "\\d", "\\.", "[^", "(?i)", "\\b", "[:alpha:]", "{0}", "ba"};
  std::size_t matched = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Rng rng(seed);
    std::string text;
    for (auto n = 1 + rng.Below(7); n > 0; --n) text += kPieces[rng.Below(std::size(kPieces))];
    const auto pattern = Pattern::Compile(text);
    if (!pattern) continue;
    for (int i = 0; i < 8; ++i) {
      std::string line;
      for (auto n = rng.Below(9); n > 0; --n) line += "aabbAB1.{"[rng.Below(9)];
      if (!pattern->IsIn(line)) continue;
      ++matched;
      ASSERT_NE(line.find(pattern->literal()), std::string::npos) << text << " in " << line;
    }
  }
  EXPECT_GT(matched, 10'000U);
}

// Looking at the heads only is a search that is faster, never another one: around everything, a
// group without capture hides the head.
TEST(HeadLiteral, ChangesNeitherMatchNorGroup) {
  constexpr std::string_view kPieces[] = {"ab", "a",       "b",    "(a*)", "(b+?)", ".*",
                                          ".",  "(?:ab)?", "[ab]", "\\d",  "(1|b)", "$",
                                          "^",  "\\b",     "+",    "?",    "ab+"};
  std::size_t with_head = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Rng rng(seed);
    std::string text = rng.Below(3) == 0 ? ".*" : "";
    for (auto n = 1 + rng.Below(6); n > 0; --n) text += kPieces[rng.Below(std::size(kPieces))];
    const auto pattern = Pattern::Compile(text);
    const auto plain = Pattern::Compile("(?:" + text + ")");
    if (!pattern || !plain) continue;
    const bool stripped = text.starts_with(".*") && !text.starts_with(".*?");
    with_head += HeadLiteral(stripped ? text.substr(2) : text).empty() ? 0 : 1;
    for (int i = 0; i < 8; ++i) {
      std::string line;
      for (auto n = rng.Below(24); n > 0; --n) line += "aaabbb1 \xff"[rng.Below(9)];
      std::optional<std::string_view> group;
      std::optional<std::string_view> expected;
      ASSERT_EQ(pattern->Find(line, group), plain->Find(line, expected)) << text << " in " << line;
      ASSERT_EQ(group, expected) << text << " in " << line;
      if (!group) continue;
      ASSERT_EQ(group->data(), expected->data()) << text << " in " << line;
    }
  }
  EXPECT_GT(with_head, 2000U);
}

}  // namespace
}  // namespace muster::spec
