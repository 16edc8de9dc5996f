#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace muster::log {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

/// Sends the log into a pipe for the life of a test.
class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    read_.Reset(ends[0]);
    write_.Reset(ends[1]);
    ::fcntl(write_.get(), F_SETPIPE_SZ, 1 << 20);
  }
  void TearDown() override { Configure({}); }
  void Start(bool json, Level level = Level::kInfo) {
    Configure({.level = level, .json = json, .fd = write_.get()});
  }
  std::string Output() {
    Configure({});
    write_.Reset();
    std::string text;
    std::array<char, 4096> buffer{};
    for (;;) {
      const auto n = ::read(read_.get(), buffer.data(), buffer.size());
      if (n <= 0) return text;
      text.append(buffer.data(), static_cast<std::size_t>(n));
    }
  }
  Fd read_;
  Fd write_;
};

TEST_F(LogTest, WritesAnEventWithItsFields) {
  Start(false);
  Info("worker exited", {{"rank", 3}, {"signal", "SIGKILL"}, {"ratio", 0.5}, {"ok", false}});
  EXPECT_THAT(Output(),
              HasSubstr(" INFO  worker exited rank=3 signal=SIGKILL ratio=0.5 ok=false\n"));
}

TEST_F(LogTest, WritesJsonThatParsesWhateverTheValues) {
  Start(true);
  Warn("e", {{"text", "a\"b\\\n\x01\x7f"},
             {"bad", "x\xff\xc0\x80y\xed\xa0\x80"},
             {"good", "\xc3\xa9\xf0\x9f\x98\x80"},
             {"c1", "\xc2\x9b"},
             {"nan", std::numeric_limits<double>::quiet_NaN()},
             {"inf", -std::numeric_limits<double>::infinity()}});
  EXPECT_THAT(Output(), EndsWith(R"("level":"WARN","event":"e","text":"a\"b\\\u000a\u0001\u007f",)"
                                 R"("bad":"x\ufffd\ufffd\ufffdy\ufffd\ufffd\ufffd",)"
                                 "\"good\":\"\xc3\xa9\xf0\x9f\x98\x80\","
                                 R"("c1":"\u009b","nan":"nan","inf":"-inf"})"
                                 "\n"));
}

TEST_F(LogTest, KeepsAHostileValueOnItsLine) {
  Start(false);
  Info("e", {{"name", "x\n2026 ERROR forged"}, {"empty", ""}, {"pair", "a=b"}});
  const std::string output = Output();
  EXPECT_THAT(output, HasSubstr("name=\"x\\u000a2026 ERROR forged\" empty=\"\" pair=\"a=b\""));
  EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1);
}

TEST_F(LogTest, PrintsIntegersOfBothSigns) {
  Start(false);
  Info("e", {{"big", std::numeric_limits<std::uint64_t>::max()},
             {"small", std::numeric_limits<std::int64_t>::min()}});
  EXPECT_THAT(Output(), HasSubstr("big=18446744073709551615 small=-9223372036854775808"));
}

TEST_F(LogTest, LeavesOutWhatIsBelowItsLevel) {
  Start(false, Level::kWarn);
  Info("quiet");
  Error("loud");
  const std::string output = Output();
  EXPECT_THAT(output, HasSubstr("ERROR loud\n"));
  EXPECT_THAT(output, testing::Not(HasSubstr("quiet")));
}

TEST_F(LogTest, KeepsLinesOfManyThreadsWhole) {
  Start(false);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([thread] {
        for (int i = 0; i < 200; ++i)
          Info("line", {{"thread", thread}, {"fill", std::string(100, 'x')}});
      });
    }
  }
  const std::string output = Output();
  std::size_t lines = 0;
  for (std::size_t begin = 0; begin < output.size(); ++lines) {
    const std::size_t end = output.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_THAT(output.substr(begin, end - begin), EndsWith("fill=" + std::string(100, 'x')));
    begin = end + 1;
  }
  EXPECT_EQ(lines, 800u);
}

}  // namespace
}  // namespace muster::log
