#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "profile/logs/log_reader.h"
#include "profile/report/scratch.h"

namespace muster::profile {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A run folder with logs that a test lets grow.
class Logs {
 public:
  Logs() : files_(*RunFiles::Open(scratch_.path())) {}

  /// Appends to a log and, with a time, a mark in front of it.
  void Write(const LogName& name, std::string_view text, std::optional<std::int64_t> t_ns = {}) {
    const std::string log = scratch_.path() + "/" + name.log_path();
    std::filesystem::create_directories(std::filesystem::path(log).parent_path());
    std::ofstream(log, std::ios::app).flush();
    if (t_ns) {
      const auto record = EncodeLogMark({.t_ns = *t_ns, .offset = std::filesystem::file_size(log)});
      WriteIndex(name, std::string_view(record.data(), record.size()));
    }
    std::ofstream(log, std::ios::app) << text;
  }
  void WriteIndex(const LogName& name, std::string_view bytes) {
    std::ofstream(scratch_.path() + "/" + name.index_path(), std::ios::app) << bytes;
  }
  LogReader Open(const LogQuery& query = {}) const { return *LogReader::Open(files_, query); }
  const RunFiles& files() const { return files_; }
  const std::string& path() const { return scratch_.path(); }

 private:
  Scratch scratch_;
  RunFiles files_;
};

/// "rank gen text" of each piece.
std::vector<std::string> ReadAll(LogReader& reader, bool to_end = true) {
  std::vector<std::string> lines;
  reader.Read(to_end, [&](const LogPiece& piece) {
    lines.push_back(fmt::format("{} {} {}", piece.name.rank, piece.name.generation, piece.text));
    return true;
  });
  return lines;
}
std::vector<std::string> ReadAll(const Logs& logs, const LogQuery& query = {}) {
  LogReader reader = logs.Open(query);
  return ReadAll(reader);
}

constexpr LogName kFirst{.generation = 1, .rank = 0};
constexpr LogName kSecond{.generation = 1, .rank = 1};

TEST(LogIndex, IsLittleEndianTimeAndOffset) {
  const LogMark mark{.t_ns = 0x0102030405060708, .offset = 0x1112};
  const auto record = EncodeLogMark(mark);
  EXPECT_EQ(std::string(record.data(), record.size()),
            std::string("\x08\x07\x06\x05\x04\x03\x02\x01\x12\x11\0\0\0\0\0\0", 16));
  EXPECT_EQ(DecodeLogMark(std::string_view(record.data(), record.size())), mark);
}

TEST(LogReader, MergesRanksByTime) {
  Logs logs;
  logs.Write(kFirst, "a\nb\n", 10);
  logs.Write(kSecond, "c\n", 20);
  logs.Write(kFirst, "d\n", 30);
  logs.Write({.generation = 2, .rank = 1, .err = true}, "e\n", 40);
  logs.Write(kFirst, "f\n", 50);
  EXPECT_THAT(ReadAll(logs),
              ElementsAre("0 1 a\n", "0 1 b\n", "1 1 c\n", "0 1 d\n", "1 2 e\n", "0 1 f\n"));
}

TEST(LogReader, WithoutAnIndexGoesLogByLogInTheOrderOfGenerations) {
  Logs logs;
  logs.Write({.generation = 2, .rank = 0}, "c\n");
  logs.Write(kSecond, "b\n");
  logs.Write(kFirst, "a\n");
  EXPECT_THAT(ReadAll(logs), ElementsAre("0 1 a\n", "1 1 b\n", "0 2 c\n"));
}

TEST(LogReader, TakesAnIndexThatIsTornOrNonsense) {
  Logs logs;
  logs.Write(kFirst, "a\n", 10);
  logs.WriteIndex(kFirst, "torn");
  logs.Write(kSecond, "b\n", 5);
  logs.WriteIndex(kSecond, std::string(64, '\xff'));
  logs.Write(kSecond, "c\n");
  EXPECT_THAT(ReadAll(logs), ElementsAre("1 1 b\n", "1 1 c\n", "0 1 a\n"));
}

TEST(LogReader, ChoosesByRankStreamAndGeneration) {
  Logs logs;
  logs.Write(kFirst, "a\n");
  logs.Write({.generation = 1, .rank = 0, .err = true}, "b\n");
  logs.Write({.generation = 2, .rank = 0}, "c\n");
  logs.Write(kSecond, "d\n");
  EXPECT_THAT(ReadAll(logs, {.choice = {.ranks = {0}, .err = false}}),
              ElementsAre("0 1 a\n", "0 2 c\n"));
  EXPECT_THAT(ReadAll(logs, {.choice = {.generation = 1, .out = false}}), ElementsAre("0 1 b\n"));
}

TEST(LogReader, KeepsBytesAndEndsLinesAtLfCrAndCrLf) {
  Logs logs;
  const std::string text("10%\r20%\r\nx\xff\0y\r\n\r\nlast", 21);
  logs.Write(kFirst, text, 1);
  LogReader reader = logs.Open();
  std::string all;
  std::size_t lines = 0;
  reader.Read(true, [&](const LogPiece& piece) {
    all += piece.text;
    lines += piece.begins ? 1 : 0;
    EXPECT_TRUE(piece.ends);
    return true;
  });
  EXPECT_EQ(all, text);
  EXPECT_EQ(lines, 5U);
}

TEST(LogReader, GivesALongLineInPiecesThatNothingComesBetween) {
  Logs logs;
  logs.Write(kFirst, std::string(3 * kMaxLogPiece, 'x') + "\n", 10);
  logs.Write(kSecond, "between\n", 5);
  LogReader reader = logs.Open();
  std::vector<std::size_t> sizes;
  reader.Read(true, [&](const LogPiece& piece) {
    sizes.push_back(piece.text.size());
    return true;
  });
  EXPECT_THAT(sizes, ElementsAre(8, kMaxLogPiece, kMaxLogPiece, kMaxLogPiece, 1));
}

TEST(LogReader, SinceBeginsAtTheFirstLineOfThatTime) {
  Logs logs;
  logs.Write(kFirst, "old\nbegun ", 10);
  logs.Write(kFirst, "before\nnew\r", 20);
  logs.Write(kFirst, "\nnewer\n", 30);
  EXPECT_THAT(ReadAll(logs, {.since_ns = 15}), ElementsAre("0 1 new\r\n", "0 1 newer\n"));
  EXPECT_THAT(ReadAll(logs, {.since_ns = 30}), ElementsAre("0 1 newer\n"));
  EXPECT_THAT(ReadAll(logs, {.since_ns = 31}), IsEmpty());
  EXPECT_EQ(ReadAll(logs, {.since_ns = 1}).size(), 4U);
}

TEST(LogReader, SinceWithoutAnIndexAsksWhenTheLogWasWritten) {
  Logs logs;
  logs.Write(kFirst, "a\n");
  const WallTime now = SystemClock().Wall();
  LogReader reader = logs.Open({.since_ns = 1, .since_wall = now - std::chrono::hours(1)});
  EXPECT_EQ(reader.without_times(), 1U);
  EXPECT_THAT(ReadAll(reader), ElementsAre("0 1 a\n"));
  EXPECT_THAT(ReadAll(logs, {.since_ns = 1, .since_wall = now + std::chrono::hours(1)}), IsEmpty());
}

TEST(LogReader, TheTailIsThatOfTheMergedLines) {
  Logs logs;
  std::vector<std::string> expected;
  for (int i = 0; i < 3000; ++i) {
    const LogName name{.generation = i < 1500 ? 1U : 2U, .rank = i % 3 == 0 ? 1U : 0U};
    logs.Write(name, fmt::format("line {}{}", i, i % 7 == 0 ? "\r" : "\n"), i);
  }
  const auto all = ReadAll(logs);
  ASSERT_EQ(all.size(), 3000U);
  for (const std::uint64_t tail : {0U, 1U, 2U, 700U, 2999U, 3000U, 9000U}) {
    expected.assign(all.end() - static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(tail, 3000)),
                    all.end());
    EXPECT_EQ(ReadAll(logs, {.tail = tail}), expected) << tail;
  }
}

TEST(LogReader, ThePatternChoosesLinesAndTheTailCountsThem) {
  Logs logs;
  logs.Write(kFirst, "loss=1\nother\nloss=2\r\n", 1);
  logs.Write(kSecond, "loss=3\nloss=4", 2);
  const auto pattern = *spec::Pattern::Compile("loss=[0-9]$");
  EXPECT_THAT(ReadAll(logs, {.pattern = &pattern}),
              ElementsAre("0 1 loss=1\n", "0 1 loss=2\r\n", "1 1 loss=3\n", "1 1 loss=4"));
  EXPECT_THAT(ReadAll(logs, {.tail = 2, .pattern = &pattern}),
              ElementsAre("1 1 loss=3\n", "1 1 loss=4"));
}

TEST(LogReader, FollowsLogsThatGrowAndNewOnes) {
  Logs logs;
  logs.Write(kFirst, "old\na\nunfin", 10);
  LogReader reader = logs.Open({.tail = 1, .to_end = false});
  logs.Write(kFirst, "ished\n", 20);
  EXPECT_THAT(ReadAll(reader, false), ElementsAre("0 1 a\n"));
  reader.GoOn();
  EXPECT_THAT(ReadAll(reader, false), ElementsAre("0 1 unfinished\n"));
  EXPECT_THAT(ReadAll(reader, false), IsEmpty());
  logs.Write({.generation = 2, .rank = 1}, "new\n", 40);
  logs.Write(kFirst, "b\n", 30);
  logs.Write(kFirst, "left", 50);
  ASSERT_TRUE(reader.Discover().has_value());
  EXPECT_THAT(ReadAll(reader, false), ElementsAre("0 1 b\n", "1 2 new\n"));
  EXPECT_THAT(ReadAll(reader, true), ElementsAre("0 1 left"));
}

TEST(LogReader, FollowsFromTheEndWithoutWhatIsThere) {
  Logs logs;
  logs.Write(kFirst, "old\nunfin", 10);
  LogReader reader = logs.Open({.since_ns = 15, .to_end = false});
  EXPECT_THAT(ReadAll(reader, false), IsEmpty());
  reader.GoOn();
  logs.Write(kFirst, "ished\nnew\n", 20);
  EXPECT_THAT(ReadAll(reader, false), ElementsAre("0 1 new\n"));
}

TEST(LogReader, StopsWhereItIsToldTo) {
  Logs logs;
  logs.Write(kFirst, "a\nb\n", 1);
  LogReader reader = logs.Open();
  int lines = 0;
  reader.Read(true, [&](const LogPiece&) { return ++lines < 1; });
  EXPECT_EQ(lines, 1);
  EXPECT_THAT(ReadAll(reader), ElementsAre("0 1 b\n"));
}

TEST(LogReader, FollowsNoLinkAndSaysSo) {
  Logs logs;
  logs.Write(kSecond, "a\n", 1);
  std::filesystem::create_directories(logs.path() + "/logs/rank-0");
  std::filesystem::create_symlink("/etc/passwd", logs.path() + "/" + kFirst.log_path());
  std::ofstream(logs.path() + "/logs/rank-1/gen-01.stdout.log") << "foreign\n";
  LogReader reader = logs.Open();
  EXPECT_THAT(ReadAll(reader), ElementsAre("1 1 a\n"));
  EXPECT_EQ(reader.TakeNotes().size(), 1U);
}

TEST(ListLogs, AFolderWithoutLogsHasNone) {
  const Logs logs;
  EXPECT_THAT(*ListLogs(logs.files()), IsEmpty());
}

}  // namespace
}  // namespace muster::profile
