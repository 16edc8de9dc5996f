#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "agent/logs/line_framer.h"
#include "agent/logs/log_file.h"
#include "agent/logs/log_keeper.h"
#include "agent/logs/stream_buffer.h"
#include "agent/testing/full_disk.h"
#include "base/no_threads_test.h"

namespace muster::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LineFramer, CutsAtLfCrAndCrLfInAnyPieces) {
  const std::string text = "a\nb\rc\r\n\r\nlast";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    LineFramer framer;
    std::vector<Line> lines;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      for (Line& line : framer.Add(text.substr(at, piece))) lines.push_back(line);
    }
    for (Line& line : framer.Finish()) lines.push_back(line);
    EXPECT_THAT(lines, ElementsAre(Line{"a"}, Line{"b"}, Line{"c"}, Line{""}, Line{"last"}));
  }
}

TEST(LineFramer, CapsALineAndMarksItsContinuation) {
  LineFramer framer;
  const auto lines = framer.Add(std::string(2 * LineFramer::kMaxLine + 5, 'x') + "\nnext\n");
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].text.size(), LineFramer::kMaxLine);
  EXPECT_FALSE(lines[0].continued);
  EXPECT_TRUE(lines[1].continued);
  EXPECT_EQ(lines[2], (Line{"xxxxx", true}));
  EXPECT_EQ(lines[3], (Line{"next", false}));
}

TEST(LineFramer, ALineOfExactlyTheCapIsOneLine) {
  LineFramer framer;
  const auto lines = framer.Add(std::string(LineFramer::kMaxLine, 'x') + "\n");
  EXPECT_EQ(lines.size(), 1U);
}

TEST(StreamBuffer, DropsTheOldestAndCountsIt) {
  StreamBuffer buffer(Bytes{10});
  for (const char* chunk : {"aaaa", "bbbb", "cccc", "dd"}) buffer.Append(chunk);
  const auto taken = buffer.Take();
  EXPECT_EQ(taken.dropped, 4U);
  EXPECT_THAT(taken.chunks, ElementsAre("bbbb", "cccc", "dd"));
  EXPECT_EQ(buffer.Tail(), "aaaabbbbccccdd") << "the tail is kept whatever became of the rest";
  EXPECT_EQ(buffer.Take().dropped, 0U);
}

TEST(StreamBuffer, TheTailIsTheLast64KiB) {
  StreamBuffer buffer;
  for (int i = 0; i < 5; ++i) buffer.Append(std::string(60'000, static_cast<char>('a' + i)));
  const std::string tail = buffer.Tail();
  EXPECT_EQ(tail.size(), 65'536U);
  EXPECT_EQ(tail.front(), 'd');
  EXPECT_EQ(tail.back(), 'e');
}

TEST(LogFile, GoesOnAfterAFullDiskAndMarksTheGap) {
  const TemporaryFolder folder;
  FullDisk disk;
  LogFile file(disk, folder.path() + "/rank-0/gen-1.stdout.log");
  EXPECT_EQ(file.Append(0, "before\n"), 0U);
  disk.full = true;
  EXPECT_EQ(file.Append(0, "12345"), 5U);
  EXPECT_EQ(file.Append(0, "678"), 3U);
  disk.full = false;
  EXPECT_EQ(file.Append(2, "after\n"), 2U);
  const auto text = PosixFiles().ReadAll(folder.path() + "/rank-0/gen-1.stdout.log", 1_KiB);
  EXPECT_EQ(*text, "before\n\n[muster: 10 bytes are missing here]\nafter\n");
}

TEST(LogKeeper, GivesUpAPipeThatSomebodyHoldsAtItsDeadline) {
  const TemporaryFolder folder;
  Console console({.quiet = true}, SystemClock());
  auto keeper = *LogKeeper::Start({.files = &PosixFiles(),
                                   .folder = folder.path() + "/logs",
                                   .console = &console,
                                   .clock = &SystemClock()});
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd writer(ends[1]);
  const LogId id{Rank(0), Generation(1), Stream::kOut};
  ASSERT_TRUE(keeper->Add(id, Fd(ends[0])));
  ASSERT_EQ(::write(writer.get(), "kept", 4), 4);
  keeper->Finish(Rank(0), Generation(1), SystemClock().Now() + std::chrono::milliseconds(20));
  EXPECT_TRUE(keeper->Stop(std::chrono::seconds(5)));
  EXPECT_TRUE(keeper->Ended(id));
  EXPECT_EQ(keeper->Tail(id), "kept");
  const auto text = PosixFiles().ReadAll(folder.path() + "/logs/rank-0/gen-1.stdout.log", 1_KiB);
  EXPECT_EQ(*text, "kept");
}

TEST(LogKeeper, SaysThatItsThreadsCannotBeStarted) {
  const TemporaryFolder folder;
  Console console({.quiet = true}, SystemClock());
  const NoThreads limit;
  const auto keeper = LogKeeper::Start({.files = &PosixFiles(),
                                        .folder = folder.path() + "/logs",
                                        .console = &console,
                                        .clock = &SystemClock()});
  ASSERT_FALSE(keeper);
  EXPECT_EQ(keeper.error().code(), Code::kExhausted);
}

TEST(LogKeeper, CountsWhatAFullDiskTookAndReportsIt) {
  const TemporaryFolder folder;
  FullDisk disk;
  Console console({.quiet = true}, SystemClock());
  auto keeper = *LogKeeper::Start({.files = &disk,
                                   .folder = folder.path() + "/logs",
                                   .console = &console,
                                   .clock = &SystemClock()});
  disk.full = true;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const LogId id{Rank(3), Generation(2), Stream::kErr};
  ASSERT_TRUE(keeper->Add(id, Fd(ends[0])));
  ASSERT_EQ(::write(ends[1], "lost bytes", 10), 10);
  ::close(ends[1]);
  EXPECT_TRUE(keeper->Stop(std::chrono::seconds(5)));
  const auto losses = keeper->TakeLosses();
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].id, id);
  EXPECT_EQ(losses[0].bytes, 10U);
  EXPECT_EQ(keeper->Tail(id), "lost bytes") << "the fault record still has it";
}

}  // namespace
}  // namespace muster::agent
