#include "agent/wire/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace muster::agent::wire {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Json = nlohmann::ordered_json;

constexpr RankRange kRanks{4, 4};
constexpr Instant kTime{nanoseconds(12'000'000'345)};

/// One of each, every field with a value of its own.
std::vector<Order> Orders() {
  return {
      order::Seat{4},
      order::Renew{},
      order::Start{Generation(3), true, 2, {Rank(4), Rank(6)}, {Rank(5)}, 8, "10.0.0.7", 40123},
      order::Go{},
      order::Pause{},
      order::Abort{"rank 1 killed by SIGKILL at step 60"},
      order::Stop{Generation(3), SIGTERM, seconds(30)},
      order::Kill{Rank(5)},
      order::Signal{SIGUSR1},
      order::TellWords{Rank(5), Generation(2), Generation(3), 2, 8, "10.0.0.7", 40123},
      order::TakeStacks{7},
      order::End{},
  };
}

report::Exited AnExit() {
  report::Exited exited{Rank(5), Generation(3), 4711};
  exited.ending = {.code = 3, .signal = 0, .start_error = 0, .never_found = false, .time = kTime};
  exited.ending.hang = "in forward for 2.0 s";
  exited.ending.rule = {"loss", "loss is nan"};
  exited.ending.advice = "raise ulimit -u";
  exited.ending.oom_kills = 2;
  exited.ending.with = "node n2: the connection closed";
  exited.exception = "ValueError: \"x\" is 3\\4";
  return exited;
}

report::Progress AProgress() {
  os::StepRecord record{.sequence = 9, .step = 8, .begin_ns = kTime.time_since_epoch().count()};
  record.total_us = 1200;
  record.generation = 3;
  record.loss = 0.5F;
  record.phase_us = {1, 2, 3, 4, 5, 6, 7};
  os::Pulse pulse{Generation(3), os::Phase::kComm, 8, 5, 17, kTime};
  const os::ProcessSight sight{os::ProcessState::kStopped, 100, 77};
  return {{{Rank(4), record}}, {{Rank(4), pulse, sight, 8192}, {Rank(5), pulse, {}}}, true, 2};
}

std::vector<Report> Reports() {
  return {
      report::ZygoteReady{4710},
      report::ZygoteBroken{"the fork server ended with exit code 1 before it had loaded torch"},
      report::Loading{seconds(5), 4710},
      report::Begun{Generation(3)},
      report::Started{Rank(5), Generation(3), 4711, true},
      AnExit(),
      report::Standing{Rank(5), Generation(3), true},
      AProgress(),
      report::Stopped{Generation(3), 1},
      report::RuleFired{{.rule = 1,
                         .name = "loss",
                         .action = spec::LogRule::Act::kFail,
                         .generation = Generation(3),
                         .rank = Rank(5),
                         .why = "loss is nan",
                         .time = kTime}},
      report::Words{Rank(5), Generation(3), "out\n", "err\n", "{}", {"RANK=5", "HOME=<redacted>"}},
      report::StacksTaken{7, {Rank(4), Rank(5)}},
      report::Stacks{7, {Rank(4)}, "{\"format\":\"muster-stacks/1\"}\n"},
      report::Losses{{{{Rank(5), Generation(3), Stream::kErr}, 4096, WhyLost::kNoRoom}}, 17},
      report::Failed{Error(Code::kExhausted, "pipe: too many open files", "raise ulimit -n")},
      report::Gone{"it was told to end by SIGTERM"},
      report::Lost{"killed by SIGKILL"},
      report::Ended{true, "/sys/fs/cgroup/muster-ab12"},
  };
}

std::string Golden(const std::string& text, const char* kind) {
  const auto json = Json::parse(text);
  std::ifstream file(std::string(MUSTER_WIRE_GOLDEN) + "/" + kind + "-" +
                     json[kind].get<std::string>() + ".json");
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

TEST(Wire, WritesEachMessageAsItsGoldenFileSays) {
  for (const Order& order : Orders()) {
    EXPECT_EQ(Encode(order) + "\n", Golden(Encode(order), "order"));
  }
  for (const Report& report : Reports()) {
    EXPECT_EQ(Encode(report) + "\n", Golden(Encode(report), "report"));
  }
  EXPECT_EQ(Orders().size(), std::variant_size_v<Order> - 1) << "one stays within a process";
  EXPECT_EQ(Reports().size(), std::variant_size_v<Report> - 3) << "three stay within a process";
}

TEST(Wire, ReadsWhatItWrote) {
  for (const Order& order : Orders()) {
    const auto read = DecodeOrder(Encode(order), kRanks);
    ASSERT_TRUE(read) << read.error().ToString();
    EXPECT_EQ(read->index(), order.index());
    EXPECT_EQ(Encode(*read), Encode(order));
  }
  for (const Report& report : Reports()) {
    const auto read = DecodeReport(Encode(report), kRanks, {});
    ASSERT_TRUE(read) << read.error().ToString();
    EXPECT_EQ(read->index(), report.index());
    EXPECT_EQ(Encode(*read), Encode(report));
  }
}

TEST(Wire, RefusesAMessageThatLacksAFieldAndNamesIt) {
  for (const Report& report : Reports()) {
    const Json whole = Json::parse(Encode(report));
    for (const auto& [key, value] : whole.items()) {
      Json part = whole;
      part.erase(key);
      const auto read = DecodeReport(part.dump(), kRanks, {});
      ASSERT_FALSE(read) << part;
      EXPECT_THAT(read.error().ToString(), testing::HasSubstr("'" + key + "'"));
    }
  }
}

TEST(Wire, RefusesAFieldOfAnotherType) {
  for (const Report& report : Reports()) {
    const Json whole = Json::parse(Encode(report));
    for (const auto& [key, value] : whole.items()) {
      Json other = whole;
      other[key] = value.is_string() ? Json(7) : Json("seven");
      EXPECT_FALSE(DecodeReport(other.dump(), kRanks, {})) << other;
      other[key] = Json::array({Json::object()});
      EXPECT_FALSE(DecodeReport(other.dump(), kRanks, {})) << other;
    }
  }
}

TEST(Wire, RefusesRanksOfAnotherNode) {
  EXPECT_TRUE(DecodeReport(Encode(AnExit()), {5, 1}, {}));
  EXPECT_FALSE(DecodeReport(Encode(AnExit()), {6, 4}, {}));
  EXPECT_FALSE(DecodeReport(Encode(AnExit()), {0, 5}, {}));
  EXPECT_FALSE(DecodeReport(Encode(AProgress()), {4, 1}, {})) << "one of its places is of rank 5";
  EXPECT_FALSE(DecodeOrder(Encode(Order(order::Kill{Rank(3)})), kRanks));
}

TEST(Wire, MovesEveryTimeToTheReadersClock) {
  const auto exited = DecodeReport(Encode(AnExit()), kRanks, seconds(-2));
  ASSERT_TRUE(exited);
  EXPECT_EQ(std::get<report::Exited>(*exited).ending.time, kTime - seconds(2));
  const auto read = DecodeReport(Encode(AProgress()), kRanks, seconds(5));
  ASSERT_TRUE(read);
  const auto& progress = std::get<report::Progress>(*read);
  EXPECT_EQ(progress.steps[0].record.begin_ns, (kTime + seconds(5)).time_since_epoch().count());
  EXPECT_EQ(progress.places[0].pulse.phase_since, kTime + seconds(5));
  auto never = AnExit();
  never.ending.time = Instant{};
  const auto unknown = DecodeReport(Encode(never), kRanks, seconds(5));
  ASSERT_TRUE(unknown);
  EXPECT_EQ(std::get<report::Exited>(*unknown).ending.time, Instant{});
}

TEST(Wire, CarriesALossThatIsNoNumber) {
  auto progress = AProgress();
  progress.steps[0].record.loss = std::nanf("");
  const auto read = DecodeReport(Encode(progress), kRanks, {});
  ASSERT_TRUE(read);
  EXPECT_TRUE(std::isnan(std::get<report::Progress>(*read).steps[0].record.loss));
}

TEST(Wire, ReplacesBytesThatAreNoText) {
  const Report words = report::Words{Rank(5), Generation(3), "a\xff\n", "", "", {}};
  const auto read = DecodeReport(Encode(words), kRanks, {});
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<report::Words>(*read).out_tail, "a\xef\xbf\xbd\n");
}

TEST(Wire, RefusesWhatIsNoMessage) {
  std::string deep(100'000, '[');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), deep,
        std::string(R"({"report":"exitus"})"), std::string(R"({"report":7})"),
        std::string(R"({"order":"go"})"), std::string(R"({"report":"stopped","left":-1})"),
        std::string(R"({"report":"stopped","left":4294967296})"),
        std::string(R"({"report":"stopped","left":1e3})")}) {
    EXPECT_FALSE(DecodeReport(text, kRanks, {})) << text.substr(0, 60);
  }
}

}  // namespace
}  // namespace muster::agent::wire
