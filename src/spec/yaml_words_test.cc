#include "spec/yaml_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster::spec {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Refused(const std::string& text) {
  const auto read = ReadDocument(text, Syntax::kYaml, "job.yaml");
  return read ? "read" : read.error().message();
}

TEST(YamlWords, SayWhatToMendAndShowTheLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"nodes: [1, 2\nx: 1\n", "a '[' above is not closed"},
      {"nodes: {min: 1\n", "a '{' above is not closed"},
      {"spec:\n  a: 1\n b: 2\n", "job.yaml:3:2: this line does not fit"},
      {"spec:\n\ta: 1\n", "job.yaml:2:1: this line is indented with a tab"},
      {"spec:\n  \ta: 1\n", "job.yaml:2:3: this line is indented with a tab"},
      {"spec:\n  a: 1\n\tb: 2\nc: 3\n", "job.yaml:3:1: this line is indented with a tab"},
      {"name: a: b\n", "job.yaml:1:8: this ':' begins a value"},
      {"a: ]\n", "this bracket closes nothing"},
      {"a: @b\n", "put the text in quotes"},
      {"a: *b\n", "put text that begins with '*' in quotes"},
      {"a: \"\\q\"\n", "double it, or use single quotes"},
      {"a: !<x y\n", "put text that begins with '!' in quotes"},
  };
  for (const auto& [text, said] : cases) {
    const std::string message = Refused(text);
    EXPECT_THAT(message, HasSubstr(said)) << text;
    EXPECT_THAT(message, HasSubstr("^")) << text;
    for (const char* jargon : {"illegal", "token", "scalar", "sequence", "anchor"})
      EXPECT_THAT(message, Not(HasSubstr(jargon))) << text;
  }
}

TEST(YamlWords, TellOfAQuoteThatIsNotClosedWhereverTheFileEnds) {
  for (const char quote : {'"', '\''}) {
    for (const char* text :
         {"a: @", "a: @b", "a: @b\n", "x: 1\na: @", "x: 1\r\n\u00e9: @", "@", "- @", "a: [1, @\n",
          "a: @b\n  c\n", "a: &n !!str @b\n", "\u00e9: 1\na: \u00e9\nb: @c\n", "\ufeffa: @b\n"}) {
      std::string bad = text;
      std::ranges::replace(bad, '@', quote);
      EXPECT_THAT(Refused(bad), HasSubstr("the file ends inside of a quoted text")) << bad;
    }
    for (const char* text :
         {"a: @@", "a: @@\n", "a: b@", "a: |\n  @", "- 1\n- @ @\n", "a: &n !!str @b@\n",
          "\u00e9: @\u00e9@\nb: @\n c@\n", "\ufeffa: @b@\n", "a: &it@s @b@\n"}) {
      std::string good = text;
      std::ranges::replace(good, '@', quote);
      EXPECT_EQ(Refused(good), "read") << good;
    }
  }
  EXPECT_EQ(Refused("a: 'it''s'\nb: \"\\\"\"\nc: \"\\\\\"\n"), "read");
  EXPECT_THAT(Refused("a: 'it''\n"), HasSubstr("job.yaml:1:4: the file ends"));
  EXPECT_THAT(Refused("a: \"b\\\"\n"), HasSubstr("job.yaml:1:4: the file ends"));
  EXPECT_EQ(Refused("x: 1\na: \""),
            "job.yaml:2:4: the file ends inside of a quoted text\n  2 | a: \"\n    |    ^");
}

TEST(Excerpt, MarksTheColumnBelowTheLine) {
  EXPECT_EQ(Excerpt("a\n  b: c: d\n", {2, 7}), "\n  2 |   b: c: d\n    |       ^");
  EXPECT_EQ(Excerpt("name: \u00e9: x", {1, 9}), "\n  1 | name: \u00e9: x\n    |        ^");
  EXPECT_EQ(Excerpt("a\n", {7, 1}), "");
  EXPECT_EQ(Excerpt(std::string(200, 'x'), {1, 150}), "");
}

TEST(Excerpt, LetsNothingOfTheFileDriveATerminal) {
  EXPECT_THAT(Excerpt("a\u009b31m: [", {1, 3}), Not(HasSubstr("\u009b")));
}

}  // namespace
}  // namespace muster::spec
