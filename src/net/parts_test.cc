// Routes, retries, error bodies and the queue of a stream: what needs no socket.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "net/http_message.h"
#include "net/retry_policy.h"
#include "net/router.h"
#include "net/stream_state.h"

namespace muster::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(RouteTableTest, PrefersLiteralsAndBindsNames) {
  RouteTable table;
  const std::size_t one = table.Add(Method::kGet, "/v1/agents/{agent}");
  const std::size_t self = table.Add(Method::kGet, "/v1/agents/self");
  const std::size_t fault = table.Add(Method::kPost, "/v1/agents/{agent}/faults/{fault}");
  EXPECT_EQ(table.Find(Method::kGet, "/v1/agents/n7")->route, one);
  EXPECT_EQ(table.Find(Method::kGet, "/v1/agents/self")->route, self);
  EXPECT_EQ(table.Find(Method::kHead, "/v1/agents/self")->route, self);
  const auto match = table.Find(Method::kPost, "/v1/agents/n7/faults/3");
  EXPECT_EQ(match->route, fault);
  EXPECT_THAT(match->bound, UnorderedElementsAre(Pair("agent", "n7"), Pair("fault", "3")));
}

TEST(RouteTableTest, SaysWhatIsWrong) {
  RouteTable table;
  table.Add(Method::kGet, "/a/{b}");
  table.Add(Method::kPut, "/a/{b}");
  for (const char* path : {"/", "/a", "/a/", "/a/b/", "/a//", "", "a/b", "*"}) {
    EXPECT_EQ(table.Find(Method::kGet, path).error().code(), Code::kNotFound) << path;
  }
  const Error error = table.Find(Method::kPost, "/a/b").error();
  EXPECT_EQ(error.code(), Code::kInvalid);
  EXPECT_EQ(error.hint(), "it takes GET, PUT");
}

TEST(ErrorBodyTest, KeepsCodeMessageAndHintOfEveryCode) {
  for (int i = 0; i <= static_cast<int>(Code::kBug); ++i) {
    const Error error(static_cast<Code>(i), "what \"happened\"", i % 2 == 0 ? "do this" : "");
    const Response response = ErrorResponse(error);
    EXPECT_EQ(response.status, TraitsOf(error.code()).http_status);
    const Error back = ErrorOf(response);
    EXPECT_EQ(back.code(), error.code());
    EXPECT_EQ(back.ToString(), error.ToString());
  }
}

TEST(ErrorBodyTest, TakesWhateverAServerSays) {
  for (const char* body : {"", "<html>", "{}", "[]", "null", R"({"error":7})", R"({"error":{}})",
                           R"({"error":{"code":"nonsense","message":"x"}})"}) {
    const Error error = ErrorOf({.status = 503, .body = body});
    EXPECT_EQ(error.code(), Code::kUnavailable);
    EXPECT_EQ(error.message(), "the server answered with status 503");
  }
  const Error hostile =
      ErrorOf({.status = 400, .body = R"({"error":{"code":"denied","message":"a\u001b[31m\nb"}})"});
  EXPECT_EQ(hostile.message(), "a b");
  EXPECT_EQ(ErrorOf({.status = 418}).code(), Code::kInvalid);
  EXPECT_TRUE(ErrorResponse(Error(Code::kInvalid, "\xff")).body.find("\xff") == std::string::npos);
}

RetryDecision Decide(const RetryOptions& options, const Attempt& attempt) {
  Rng random(3);
  return DecideRetry(options, attempt, random);
}

TEST(RetryPolicyTest, WaitsLongerEachTimeWithJitterBelowTheMost) {
  const RetryOptions options{.attempts = 100,
                             .first = milliseconds(100),
                             .most = seconds(1),
                             .total = seconds(1000),
                             .idempotent = true};
  Rng random(1);
  for (unsigned number = 1; number < 20; ++number) {
    const auto step = std::min<std::chrono::nanoseconds>(
        seconds(1), milliseconds(100) * (1U << std::min(number - 1, 10U)));
    const auto decision = DecideRetry(options, {.number = number}, random);
    EXPECT_TRUE(decision.again);
    EXPECT_GE(decision.wait, step / 2);
    EXPECT_LE(decision.wait, step);
  }
}

TEST(RetryPolicyTest, KnowsWhatMayPass) {
  const RetryOptions options{.attempts = 5, .idempotent = true};
  for (const int status : {408, 429, 502, 503, 504}) {
    EXPECT_TRUE(Decide(options, {.status = status}).again) << status;
  }
  for (const int status : {200, 204, 400, 401, 404, 409, 413, 500, 501}) {
    EXPECT_FALSE(Decide(options, {.status = status}).again) << status;
  }
  EXPECT_TRUE(Decide(options, {.code = Code::kUnavailable}).again);
  EXPECT_TRUE(Decide(options, {.code = Code::kDeadline}).again);
  EXPECT_FALSE(Decide(options, {.code = Code::kDenied}).again);
}

TEST(RetryPolicyTest, DoesNothingTwiceThatMayHaveBeenDone) {
  const RetryOptions options{.attempts = 5};
  EXPECT_FALSE(Decide(options, {.code = Code::kUnavailable, .sent = true}).again);
  EXPECT_TRUE(Decide(options, {.code = Code::kUnavailable, .sent = false}).again);
  EXPECT_FALSE(Decide(options, {.status = 504}).again);
  EXPECT_TRUE(Decide(options, {.status = 503}).again);
}

TEST(RetryPolicyTest, StopsAfterItsAttemptsAndItsTime) {
  const RetryOptions options{.attempts = 3, .total = seconds(10), .idempotent = true};
  EXPECT_TRUE(Decide(options, {.number = 2}).again);
  EXPECT_FALSE(Decide(options, {.number = 3}).again);
  EXPECT_FALSE(Decide(options, {.number = 1, .elapsed = seconds(10)}).again);
  EXPECT_EQ(Decide(options, {.status = 503, .retry_after = seconds(4)}).wait, seconds(4));
  EXPECT_FALSE(Decide(options, {.status = 503, .retry_after = seconds(11)}).again);
  EXPECT_FALSE(Decide({}, {.code = Code::kUnavailable, .sent = false}).again);
}

class FakeCarrier final : public StreamCarrier {
 public:
  void Wake() override { ++wakes; }
  void Cut() override { ++cuts; }
  int wakes = 0;
  int cuts = 0;
};

SharedFrame Frame(std::size_t size) { return std::make_shared<const std::string>(size, 'x'); }

TEST(StreamStateTest, HandsOutItsFramesInAnyPieces) {
  StreamState state(100);
  ASSERT_TRUE(state.Push(std::make_shared<const std::string>("hello ")));
  ASSERT_TRUE(state.Push(std::make_shared<const std::string>("world")));
  std::string got;
  char buffer[4];
  while (const std::size_t count = state.Take(buffer, sizeof(buffer))) got.append(buffer, count);
  EXPECT_EQ(got, "hello world");
  EXPECT_EQ(state.queued_bytes(), 0U);
}

TEST(StreamStateTest, CutsAReaderOffThatIsTooSlow) {
  StreamState state(100);
  FakeCarrier carrier;
  state.set_carrier(&carrier);
  std::vector<StreamEnd> ends;
  state.set_on_end([&ends](StreamEnd end) { ends.push_back(end); });
  EXPECT_TRUE(state.Push(Frame(250)));  // a frame alone may be larger
  const Status pushed = state.Push(Frame(1));
  EXPECT_EQ(pushed.error().code(), Code::kExhausted);
  EXPECT_THAT(pushed.error().message(), HasSubstr("250 bytes wait for it, at most 100 may"));
  EXPECT_EQ(carrier.cuts, 1);
  EXPECT_EQ(state.queued_bytes(), 0U);
  EXPECT_EQ(state.end(), StreamEnd::kSlowReader);
  EXPECT_EQ(state.Push(Frame(1)).error().code(), Code::kCancelled);
  state.End(StreamEnd::kPeerGone);
  state.TellEnd();
  state.TellEnd();
  EXPECT_THAT(ends, testing::ElementsAre(StreamEnd::kSlowReader));
}

TEST(StreamStateTest, LettingGoOfTheHandleClosesQuietly) {
  auto state = std::make_shared<StreamState>(100);
  {
    EventStream stream(state);
    stream.OnEnd([](StreamEnd) { FAIL(); });
    EXPECT_TRUE(stream.Send({.data = "x"}));
    EventStream moved = std::move(stream);
    EXPECT_TRUE(moved.open());
  }
  EXPECT_TRUE(state->closing());
  EXPECT_GT(state->queued_bytes(), 0U);
  state->End(StreamEnd::kClosed);
  state->TellEnd();
}

}  // namespace
}  // namespace muster::net
