#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/store/store_state.h"
#include "agent/store/store_wire.h"

namespace muster::agent {
namespace {

using std::string_literals::operator""s;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kGreeting = "\x00\xCE\xF7\x85\x3C"s;
const std::string kOk = "\0"s;
const std::string kNo = "\1"s;

std::string N(std::uint64_t value) {
  std::string out;
  PutStoreNumber(out, value);
  return out;
}
std::string S(std::string_view value) {
  std::string out;
  PutStoreBytes(out, value);
  return out;
}
std::string Op(StoreOp op) { return {static_cast<char>(op)}; }

/// A store and its clients, each given by a letter; talks in bytes as torch does.
class Store {
 public:
  /// What every client gets when `client` sends `bytes`: "a" → its bytes.
  std::map<char, std::string> Send(char client, const std::string& bytes) {
    StoreRequestReader& reader = readers_[client];
    if (greeted_.insert(client).second) reader.Append(kGreeting);
    reader.Append(bytes);
    std::map<char, std::string> got;
    for (;;) {
      const auto request = reader.Next();
      EXPECT_TRUE(request.has_value()) << request.error().ToString();
      if (!request || !*request) return got;
      const auto replies = state_.Apply(Id(client), **request);
      EXPECT_TRUE(replies.has_value()) << replies.error().ToString();
      if (!replies) return got;
      for (const StoreReply& reply : *replies) {
        got[static_cast<char>(reply.client.value())] += reply.bytes;
      }
    }
  }
  /// What the client itself gets.
  std::string Ask(char client, const std::string& bytes) { return Send(client, bytes)[client]; }
  void Leave(char client) { state_.Forget(Id(client)); }
  StoreState& state() { return state_; }

 private:
  static StoreClientId Id(char client) { return StoreClientId(static_cast<std::uint64_t>(client)); }
  StoreState state_;
  std::map<char, StoreRequestReader> readers_;
  std::set<char> greeted_;
};

std::string Set(std::string_view key, std::string_view value) {
  return Op(StoreOp::kSet) + S(key) + S(value);
}
std::string Get(std::string_view key) { return Op(StoreOp::kGet) + S(key); }
std::string Wait(std::string_view key) { return Op(StoreOp::kWait) + N(1) + S(key); }
std::string Add(std::string_view key, std::int64_t by) {
  return Op(StoreOp::kAdd) + S(key) + N(static_cast<std::uint64_t>(by));
}
std::string Barrier(std::string_view key, std::uint64_t world) {
  return Op(StoreOp::kBarrier) + S(key) + N(world);
}

// The bytes are those that torch 2.13's own client and server exchanged.
TEST(StoreWire, SpeaksAsTorchsOwnServerDoes) {
  Store store;
  EXPECT_EQ(store.Ask('a', "\x0D\x86\x0A\x00\x00"s), "\x86\x0A\x00\x00"s);
  EXPECT_EQ(store.Ask('a', "\x01\x02\0\0\0\0\0\0\0/k\x02\0\0\0\0\0\0\0v1"s), "");
  EXPECT_EQ(store.Ask('a', "\x03\x02\0\0\0\0\0\0\0/k"s), "\x02\0\0\0\0\0\0\0v1"s);
  EXPECT_EQ(store.Ask('a', "\x04\x02\0\0\0\0\0\0\0/n\x05\0\0\0\0\0\0\0"s), "\x05\0\0\0\0\0\0\0"s);
  EXPECT_EQ(store.Ask('a', "\x05\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0/k\x03\0\0\0\0\0\0\0/zz"s),
            "\x01"s);
  EXPECT_EQ(store.Ask('a', "\x07"s), "\x02\0\0\0\0\0\0\0"s);
  EXPECT_EQ(store.Ask('a', "\x08\x02\0\0\0\0\0\0\0/n"s), "\x01\0\0\0\0\0\0\0"s);
  EXPECT_EQ(store.Ask('a', "\x0E\x02\0\0\0\0\0\0\0/q\x02\0\0\0\0\0\0\0e1"s), "");
  EXPECT_EQ(store.Ask('a', "\x10\x02\0\0\0\0\0\0\0/q"s), "\x01\0\0\0\0\0\0\0"s);
  EXPECT_EQ(store.Ask('a', "\x0F\x02\0\0\0\0\0\0\0/q"s), "\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0e1"s);
  EXPECT_EQ(store.Ask('a', "\x11"s), "\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0/k"s);
  EXPECT_EQ(store.Ask('a', "\x12\x03\0\0\0\0\0\0\0/bk\x01\0\0\0\0\0\0\0"s), "\0"s);
}

TEST(StoreWire, ReadsARequestThatComesByteByByte) {
  StoreRequestReader reader;
  const std::string bytes =
      kGreeting + Op(StoreOp::kMultiSet) + N(2) + S("a") + S("1") + S("b") + S("22") + Get("a");
  std::vector<StoreRequest> requests;
  for (const char byte : bytes) {
    reader.Append({&byte, 1});
    const auto request = reader.Next();
    ASSERT_TRUE(request.has_value());
    if (*request) requests.push_back(**request);
  }
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_THAT(requests[1].keys, ElementsAre("a", "b"));
  EXPECT_THAT(requests[1].values, ElementsAre("1", "22"));
  EXPECT_EQ(requests[2].op, StoreOp::kGet);
}

TEST(StoreWire, RefusesWhatIsNotTheProtocolOrBeyondItsLimits) {
  const auto refused = [](const std::string& bytes) {
    StoreRequestReader reader;
    reader.Append(bytes);
    for (;;) {
      const auto request = reader.Next();
      if (!request) return request.error().message();
      if (!*request) return "waits for more"s;
    }
  };
  EXPECT_THAT(refused("GET / HTTP/1.1\r\n"), HasSubstr("no greeting"));
  EXPECT_THAT(refused("\0abcd"s), HasSubstr("another magic number"));
  EXPECT_THAT(refused(kGreeting + kGreeting), HasSubstr("a second greeting"));
  EXPECT_THAT(refused(kGreeting + "\x63"), HasSubstr("an operation with number 99"));
  EXPECT_THAT(refused(kGreeting + Op(StoreOp::kGet) + N(kMaxStoreKey + 1)),
              HasSubstr("a key of 8193 bytes; 8192 are the most"));
  EXPECT_THAT(refused(kGreeting + Op(StoreOp::kSet) + S("k") + N(kMaxStoreValue + 1)),
              HasSubstr("a value of 8388609 bytes"));
  EXPECT_THAT(refused(kGreeting + Op(StoreOp::kWait) + N(~0ULL)), HasSubstr("keys in one request"));
  EXPECT_EQ(refused(kGreeting + Get("k").substr(0, 9)), "waits for more");
}

TEST(StoreState, AWaitEndsWhenTheLastOfItsKeysIsThere) {
  Store store;
  store.Send('a', Set("here", ""));
  EXPECT_EQ(store.Ask('a', Wait("here")), kOk);
  EXPECT_THAT(store.Send('a', Op(StoreOp::kWait) + N(3) + S("x") + S("here") + S("y")), IsEmpty());
  EXPECT_THAT(store.Send('b', Set("x", "1")), IsEmpty());
  EXPECT_EQ(store.Send('b', Add("y", 1)), (std::map<char, std::string>{{'a', kOk}, {'b', N(1)}}));
}

TEST(StoreState, ACancelledWaitIsAnsweredOnce) {
  Store store;
  EXPECT_THAT(store.Send('a', Wait("x")), IsEmpty());
  EXPECT_EQ(store.Ask('a', Op(StoreOp::kCancelWait)), kNo);
  EXPECT_THAT(store.Send('b', Set("x", "1")), IsEmpty());
  EXPECT_THAT(store.Send('b', Wait("y")), IsEmpty());
  store.Leave('b');
  EXPECT_THAT(store.Send('a', Set("y", "1")), IsEmpty());
}

TEST(StoreState, OneElementWakesOneThatWaitsForTheQueue) {
  Store store;
  store.Send('a', Wait("q"));
  store.Send('b', Wait("q"));
  const std::string push = Op(StoreOp::kQueuePush) + S("q") + S("e");
  EXPECT_EQ(store.Send('c', push), (std::map<char, std::string>{{'a', kOk}}));
  EXPECT_EQ(store.Send('c', push), (std::map<char, std::string>{{'b', kOk}}));
  EXPECT_EQ(store.Ask('a', Op(StoreOp::kQueuePop) + S("q")), N(1) + S("e"));
  EXPECT_EQ(store.Ask('a', Op(StoreOp::kQueuePop) + S("q")), N(1) + S("e"));
  EXPECT_EQ(store.Ask('a', Op(StoreOp::kQueuePop) + S("q")), N(0));
}

TEST(StoreState, ABarrierOpensForAllWhenTheLastOneComesAndStaysOpen) {
  Store store;
  EXPECT_THAT(store.Send('a', Barrier("b", 3)), IsEmpty());
  EXPECT_THAT(store.Send('b', Barrier("b", 3)), IsEmpty());
  EXPECT_EQ(store.Send('c', Barrier("b", 3)),
            (std::map<char, std::string>{{'a', kOk}, {'b', kOk}, {'c', kOk}}));
  EXPECT_EQ(store.Ask('a', Barrier("b", 3)), kOk);
  EXPECT_EQ(store.Ask('a', Get("b")), S("4"));
}

TEST(StoreState, AnswersCompareSetWithWhatIsThereAfterwards) {
  Store store;
  const auto compare_set = [](std::string_view expected, std::string_view value) {
    return Op(StoreOp::kCompareSet) + S("k") + S(expected) + S(value);
  };
  EXPECT_EQ(store.Ask('a', compare_set("old", "new")), S("old"));  // as torch: nothing was set
  EXPECT_EQ(store.Ask('a', Get("k")), S(""));
  EXPECT_EQ(store.Ask('a', compare_set("", "one")), S("one"));
  EXPECT_EQ(store.Ask('a', compare_set("two", "three")), S("one"));
  EXPECT_EQ(store.Ask('a', compare_set("one", "two")), S("two"));
}

TEST(StoreState, ACounterThatHoldsNoNumberCostsItsClientOnly) {
  Store store;
  store.Send('a', Set("k", "x"));
  const StoreRequest request{.op = StoreOp::kAdd, .keys = {"k"}, .number = 1};
  const auto refused = store.state().Apply(StoreClientId('a'), request);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("k, which holds no number"));
  EXPECT_EQ(store.Ask('b', Get("k")), S("x"));
}

TEST(StoreState, HoldsNoMoreThanItsLimitAndCountsWhatGoes) {
  Store store;
  const std::string most(kMaxStoreValue, 'v');
  for (int i = 0; i < 31; ++i) store.Send('a', Set(std::to_string(i), most));
  const StoreRequest request{.op = StoreOp::kMultiSet, .keys = {"x", "y"}, .values = {most, most}};
  const auto refused = store.state().Apply(StoreClientId('a'), request);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kExhausted);
  EXPECT_EQ(store.Ask('a', Get("x")), S(""));
  for (int i = 0; i < 31; ++i) {
    EXPECT_EQ(store.Ask('a', Op(StoreOp::kDelete) + S(std::to_string(i))), N(1));
  }
  EXPECT_EQ(store.state().bytes(), 0U);
}

TEST(StoreState, GivesNoAnswerThatIsFarLargerThanWhatItHolds) {
  Store store;
  store.Send('a', Set("k", std::string(kMaxStoreValue, 'v')));
  const StoreRequest request{.op = StoreOp::kMultiGet, .keys = std::vector<std::string>(1000, "k")};
  const auto refused = store.state().Apply(StoreClientId('a'), request);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kExhausted);
}

}  // namespace
}  // namespace muster::agent
