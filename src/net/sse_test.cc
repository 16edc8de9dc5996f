#include "net/sse.h"

#include <gmock/gmock.h>

#include <vector>

#include "base/rng.h"

namespace muster::net {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Event> Parse(std::string_view bytes) {
  SseParser parser;
  std::vector<Event> events;
  EXPECT_TRUE(parser.Feed(bytes, [&](Event event) { events.push_back(std::move(event)); }));
  return events;
}

// The examples of the standard, section 9.2.6.
TEST(SseParserTest, ReadsTheExamplesOfTheStandard) {
  EXPECT_THAT(Parse("data: YHOO\ndata: +2\ndata: 10\n\n"),
              ElementsAre(Event{"", "message", "YHOO\n+2\n10"}));
  EXPECT_THAT(
      Parse(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
            "data:  third event\n\n"),
      ElementsAre(Event{"1", "message", "first event"}, Event{"", "message", "second event"},
                  Event{"", "message", " third event"}));
  EXPECT_THAT(Parse("data\n\ndata\ndata\n\ndata:"),
              ElementsAre(Event{"", "message", ""}, Event{"", "message", "\n"}));
  EXPECT_THAT(Parse("data:test\n\ndata: test\n\n"),
              ElementsAre(Event{"", "message", "test"}, Event{"", "message", "test"}));
}

TEST(SseParserTest, TakesEveryLineEndAndAByteOrderMark) {
  EXPECT_THAT(
      Parse("\xEF\xBB\xBF"
            "data: a\r\rdata: b\r\n\r\ndata: c\n\n"),
      ElementsAre(Event{"", "message", "a"}, Event{"", "message", "b"}, Event{"", "message", "c"}));
  EXPECT_THAT(Parse("data: a\n\xEF\xBB\xBF"
                    "data: b\n\n"),
              ElementsAre(Event{"", "message", "a"}));  // in the midst it is part of a name
}

TEST(SseParserTest, KeepsTheIdAndForgetsTheType) {
  EXPECT_THAT(Parse("event: x\nid: 7\ndata: a\n\ndata: b\n\n"),
              ElementsAre(Event{"7", "x", "a"}, Event{"7", "message", "b"}));
  EXPECT_THAT(Parse("event: x\n\ndata: b\n\n"), ElementsAre(Event{"", "message", "b"}));
  EXPECT_THAT(Parse(std::string_view("id: 7\nid: 8\0\ndata: a\n\n", 22)),
              ElementsAre(Event{"7", "message", "a"}));
}

TEST(SseParserTest, AnIdCountsOnceItsEventIsWhole) {
  SseParser parser;
  const auto ignore = [](const Event&) {};
  EXPECT_TRUE(parser.Feed("id: 1\n\nid: 2\ndata: half", ignore));
  EXPECT_EQ(parser.last_event_id(), "1");
  EXPECT_TRUE(parser.Feed("\n\n", ignore));
  EXPECT_EQ(parser.last_event_id(), "2");
}

TEST(SseParserTest, TakesADigitsOnlyRetry) {
  SseParser parser;
  const auto ignore = [](const Event&) {};
  EXPECT_TRUE(parser.Feed("retry: 12x\nretry:\nretry: -1\nretry: 99999999999999999999\n", ignore));
  EXPECT_FALSE(parser.retry());
  EXPECT_TRUE(parser.Feed(FormatRetry(std::chrono::milliseconds(250)), ignore));
  EXPECT_EQ(parser.retry(), std::chrono::milliseconds(250));
}

TEST(SseParserTest, MakesUtf8OfAnything) {
  EXPECT_THAT(Parse("data: \xff\xfe\n\n"), ElementsAre(Event{"", "message", "\uFFFD\uFFFD"}));
}

TEST(SseParserTest, GivesUpBeyondItsLimits) {
  const auto ignore = [](const Event&) {};
  SseParser lines({.line = 10, .event = 100});
  EXPECT_TRUE(lines.Feed("data: 1234\n", ignore));
  EXPECT_EQ(lines.Feed("data: 12345", ignore).error().code(), Code::kPrecondition);
  EXPECT_FALSE(lines.Feed("\n\n", ignore));
  SseParser events({.line = 10, .event = 20});
  Status fed = Ok();
  for (int i = 0; i < 30 && fed; ++i) fed = events.Feed("data\n", ignore);
  EXPECT_EQ(fed.error().code(), Code::kPrecondition);
}

TEST(SseParserTest, ReadsTheSameInWhateverPiecesItComes) {
  const std::string text =
      ":hi\r\nid: 1\revent: table\r\ndata: a\ndata: b\r\n\r\n\ndata\n\nretry: 5\rdata: c\r\r";
  const std::vector<Event> whole = Parse(text);
  ASSERT_EQ(whole.size(), 3U);
  Rng random(7);
  for (int round = 0; round < 1000; ++round) {
    SseParser parser;
    std::vector<Event> events;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = 1 + random.Below(4);
      ASSERT_TRUE(parser.Feed(text.substr(at, size),
                              [&](Event event) { events.push_back(std::move(event)); }));
      at += size;
    }
    EXPECT_EQ(events, whole);
  }
}

TEST(FormatEventTest, ComesBackAsItWas) {
  for (const Event& event :
       {Event{"3", "table", "{\"a\":1}"}, Event{"3", "message", ""}, Event{"x y", "t", "a\n\nb\n"},
        Event{"", "message", " leading"}, Event{"", "message", "id: 5"}}) {
    EXPECT_THAT(Parse(FormatEvent(event)), ElementsAre(event));
  }
  EXPECT_THAT(Parse(FormatEvent({.data = "a\r\nb\rc"})),
              ElementsAre(Event{"", "message", "a\nb\nc"}));
  EXPECT_THAT(Parse(FormatComment("data: no") + FormatComment("")), IsEmpty());
}

}  // namespace
}  // namespace muster::net
