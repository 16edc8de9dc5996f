#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "agent/logs/line_framer.h"
#include "agent/logs/log_file.h"
#include "agent/logs/log_keeper.h"
#include "agent/logs/log_marks.h"
#include "agent/logs/stream_buffer.h"
#include "agent/testing/hung_disk.h"
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

std::vector<std::string> TextsOf(const StreamBuffer::Taken& taken) {
  std::vector<std::string> texts;
  for (const auto& chunk : taken.chunks) texts.push_back(chunk.bytes);
  return texts;
}

TEST(StreamBuffer, DropsTheOldestAndCountsIt) {
  StreamBuffer buffer(Bytes{10000});
  for (const char* c : {"a", "b", "c", "d"}) buffer.Append(std::string(4000, *c));
  const auto taken = buffer.Take();
  EXPECT_EQ(taken.dropped, 8000U);
  EXPECT_THAT(TextsOf(taken), ElementsAre(std::string(4000, 'c'), std::string(4000, 'd')));
  EXPECT_EQ(buffer.Tail().size(), 16000U) << "the tail is kept whatever became of the rest";
  EXPECT_EQ(buffer.Take().dropped, 0U);
}

TEST(StreamBuffer, PutsSmallWritesTogether) {
  StreamBuffer buffer;
  for (int i = 0; i < 5000; ++i) buffer.Append("x");
  EXPECT_THAT(TextsOf(buffer.Take()), ElementsAre(std::string(4096, 'x'), std::string(904, 'x')));
}

TEST(StreamBuffer, KeepsWhenWhatCame) {
  StreamBuffer buffer;
  const Instant begin{std::chrono::seconds(100)};
  for (const int ms : {0, 20, 49, 50, 120}) {
    buffer.Append("x", begin + std::chrono::milliseconds(ms));
  }
  const auto taken = buffer.Take();
  EXPECT_THAT(TextsOf(taken), ElementsAre("xxx", "x", "x"));
  EXPECT_EQ(taken.chunks[1].at, begin + std::chrono::milliseconds(50));
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
  EXPECT_EQ(file.Append(0, "123456"), 3U) << "half of it was kept";
  EXPECT_EQ(file.Append(0, "789"), 3U);
  disk.full = false;
  EXPECT_EQ(file.Append(2, "after\n"), 2U);
  EXPECT_EQ(file.Append(0, "and on\n"), 0U);
  const auto text = PosixFiles().ReadAll(folder.path() + "/rank-0/gen-1.stdout.log", 1_KiB);
  EXPECT_EQ(*text, "before\n123\n[muster: 8 bytes are missing here]\nafter\nand on\n");
}

std::vector<profile::LogMark> MarksIn(const std::string& path) {
  const auto bytes = PosixFiles().ReadAll(path, 1_MiB);
  std::vector<profile::LogMark> marks;
  for (std::size_t at = 0; bytes && at < bytes->size(); at += profile::kLogRecordBytes) {
    marks.push_back(profile::DecodeLogMark(std::string_view(*bytes).substr(at)));
  }
  return marks;
}

TEST(LogMarks, OneIsDueAfter50MsOr64KiB) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/rank-0/gen-1.stdout.idx";
  LogMarks marks(PosixFiles(), path);
  const auto at = [](int ms) { return Instant(std::chrono::milliseconds(ms)); };
  marks.Add(at(1), 0);
  marks.Add(at(50), 100);
  marks.Add(at(51), 200);
  marks.Add(at(52), 200 + 65'535);
  marks.Add(at(53), 200 + 65'536);
  marks.Write();
  EXPECT_THAT(MarksIn(path),
              ElementsAre(profile::LogMark{1'000'000, 0}, profile::LogMark{51'000'000, 200},
                          profile::LogMark{53'000'000, 65'736}));
}

TEST(LogMarks, StayWholeOnADiskThatFillsUp) {
  const TemporaryFolder folder;
  FullDisk disk;
  const std::string path = folder.path() + "/rank-0/gen-1.stdout.idx";
  LogMarks marks(disk, path);
  const auto at = [](int s) { return Instant(std::chrono::seconds(s)); };
  const auto write = [&](std::initializer_list<int> times) {
    for (const int time : times) marks.Add(at(time), 10U * static_cast<unsigned>(time));
    marks.Write();
  };
  write({1});
  disk.full = true;
  write({2, 3, 4});  // of three, one and a half have room
  write({5});
  disk.full = false;
  write({6});
  const auto found = MarksIn(path);
  ASSERT_EQ(found.size(), 4U) << "the half of the third was completed";
  EXPECT_EQ(found[1].offset, 20U);
  EXPECT_EQ(found[2].offset, 30U);
  EXPECT_EQ(found[3].offset, 60U);
}

TEST(LogMarks, OnlyGoUp) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/rank-0/gen-1.stdout.idx";
  LogMarks marks(PosixFiles(), path);
  const auto at = [](int s) { return Instant(std::chrono::seconds(s)); };
  marks.Add(at(1), 0);
  marks.Add(at(2), 500);
  marks.Add(at(3), 200);  // the log had no room for all of it
  marks.Add(at(4), 600);
  marks.Write();
  EXPECT_THAT(MarksIn(path),
              ElementsAre(profile::LogMark{1'000'000'000, 0}, profile::LogMark{2'000'000'000, 500},
                          profile::LogMark{4'000'000'000, 600}));
}

TEST(LogKeeper, GivesUpAPipeThatSomebodyHoldsAtItsDeadline) {
  const TemporaryFolder folder;
  const auto console = std::make_shared<Console>(ConsoleOptions{.quiet = true}, SystemClock());
  auto keeper = *LogKeeper::Start({.files = &PosixFiles(),
                                   .folder = folder.path() + "/logs",
                                   .console = console,
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
  const auto marks = MarksIn(folder.path() + "/logs/rank-0/gen-1.stdout.idx");
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(marks[0].offset, 0U);
  EXPECT_LE(marks[0].t_ns, SystemClock().Now().time_since_epoch().count());
}

TEST(LogKeeper, SaysThatItsThreadsCannotBeStarted) {
  const TemporaryFolder folder;
  const auto console = std::make_shared<Console>(ConsoleOptions{.quiet = true}, SystemClock());
  const NoThreads limit;
  const auto keeper = LogKeeper::Start({.files = &PosixFiles(),
                                        .folder = folder.path() + "/logs",
                                        .console = console,
                                        .clock = &SystemClock()});
  ASSERT_FALSE(keeper);
  EXPECT_EQ(keeper.error().code(), Code::kExhausted);
}

TEST(LogKeeper, CountsWhatAFullDiskTookAndReportsIt) {
  const TemporaryFolder folder;
  FullDisk disk;
  const auto console = std::make_shared<Console>(ConsoleOptions{.quiet = true}, SystemClock());
  auto keeper = *LogKeeper::Start({.files = &disk,
                                   .folder = folder.path() + "/logs",
                                   .console = console,
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
  EXPECT_EQ(losses[0].why, WhyLost::kNoRoom);
  EXPECT_EQ(keeper->Tail(id), "lost bytes") << "the fault record still has it";
}

/// A second later whenever it is asked.
class LeapingClock final : public Clock {
 public:
  Instant Now() const override { return Instant(std::chrono::seconds(++asked_)); }
  WallTime Wall() const override { return {}; }

 private:
  mutable std::atomic<int> asked_ = 0;
};

TEST(LogKeeper, WritesAtOnceWhatCameWhileTheDiskWasSlow) {
  const TemporaryFolder folder;
  HungDisk disk;
  const LeapingClock clock;
  const auto console = std::make_shared<Console>(ConsoleOptions{.quiet = true}, SystemClock());
  auto keeper = *LogKeeper::Start(
      {.files = &disk, .folder = folder.path() + "/logs", .console = console, .clock = &clock});
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const LogId id{Rank(0), Generation(1), Stream::kOut};
  ASSERT_TRUE(keeper->Add(id, Fd(ends[0])));
  disk.AwaitHang();
  for (std::size_t i = 1; i <= 5; ++i) {
    ASSERT_EQ(::write(ends[1], "a line\n", 7), 7);
    while (keeper->Tail(id).size() < 7 * i) std::this_thread::yield();
  }
  ::close(ends[1]);
  disk.LetGo();
  EXPECT_TRUE(keeper->Stop(std::chrono::seconds(5)));
  const std::string path = LogKeeper::PathOf(folder.path() + "/logs", id);
  EXPECT_EQ(PosixFiles().ReadAll(path + ".log", 1_KiB)->size(), 35U);
  EXPECT_EQ(MarksIn(path + ".idx").size(), 5U) << "each line has its time";
  EXPECT_LE(disk.writes, 2U) << "one of the log, one of its index";
}

TEST(LossTotals, SaysOfEachStreamHowMuchAndWhy) {
  LossTotals totals;
  const LogId out{Rank(0), Generation(1), Stream::kOut};
  for (int i = 0; i < 2; ++i) totals.Add({out, 1024, WhyLost::kNoRoom});
  totals.Add({out, 3, WhyLost::kTooFast});
  EXPECT_THAT(totals.InWords(),
              testing::ElementsAre(
                  "3 B of what rank 0 wrote to its stdout came faster than it could be kept, "
                  "and was dropped",
                  "the disk had no room for 2.00 KiB of what rank 0 wrote to its stdout"));
  for (unsigned rank = 1; rank < 6; ++rank) {
    totals.Add({{Rank(rank), Generation(1), Stream::kErr}, 1024, WhyLost::kFailed});
  }
  EXPECT_EQ(totals.InWords().size(), 5U);
  EXPECT_EQ(totals.InWords().back(), "3.00 KiB of what other ranks wrote could not be kept either");
}

TEST(LogKeeper, OutlivesAWriteThatHangs) {
  const TemporaryFolder folder;
  HungDisk disk;
  auto console = std::make_shared<Console>(ConsoleOptions{.quiet = true}, SystemClock());
  const std::weak_ptr<Console> still_used = console;
  auto keeper = *LogKeeper::Start({.files = &disk,
                                   .folder = folder.path() + "/logs",
                                   .console = std::move(console),
                                   .clock = &SystemClock()});
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ASSERT_TRUE(keeper->Add({Rank(0), Generation(1), Stream::kOut}, Fd(ends[0])));
  ::close(ends[1]);
  disk.AwaitHang();
  EXPECT_FALSE(keeper->Stop(std::chrono::nanoseconds(0)));
  EXPECT_FALSE(keeper->Stop(std::chrono::seconds(5))) << "the first answer stands";
  keeper.reset();
  EXPECT_FALSE(still_used.expired()) << "the writer may come back and must find what it uses";
  disk.LetGo();
  const Instant deadline = SystemClock().Now() + std::chrono::seconds(10);
  while (!still_used.expired() && SystemClock().Now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(still_used.expired()) << "and lets go of it";
}

/// A terminal of our own; the test holds the master.
struct Terminal {
  Fd master;
  Fd slave;
};
Terminal OpenTerminal() {
  Terminal terminal;
  terminal.master.Reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  MUSTER_CHECK(::grantpt(terminal.master.get()) == 0 && ::unlockpt(terminal.master.get()) == 0);
  std::array<char, 64> name{};
  MUSTER_CHECK(::ptsname_r(terminal.master.get(), name.data(), name.size()) == 0);
  terminal.slave.Reset(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  return terminal;
}

TEST(Console, ATerminalThatIsNotReadBlocksNobody) {
  const Terminal terminal = OpenTerminal();
  const int fd = terminal.slave.get();
  Console console({.out_fd = fd, .err_fd = fd}, SystemClock());
  for (int i = 0; i < 100; ++i) {
    console.Say(std::string(4000, 'x'));
    console.Pump();
  }
  console.Flush(std::chrono::milliseconds(1));
  EXPECT_EQ(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0) << "others write to this open file too";
}

TEST(Console, ShowsTheStreamsOfARankThatAreAskedFor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd read(ends[0]);
  const Fd write(ends[1]);
  Console console({.out_fd = write.get(),
                   .err_fd = write.get(),
                   .ranks = {{.out = false, .err = true, .prefix = {}},
                             {.out = true, .err = false, .prefix = "[w1]:"}}},
                  SystemClock());
  for (const std::uint32_t rank : {0U, 1U, 2U}) {
    console.WorkerLine(Rank(rank), Generation(1), Stream::kOut, {.text = "out"});
    console.WorkerLine(Rank(rank), Generation(1), Stream::kErr, {.text = "err"});
  }
  console.Flush(std::chrono::seconds(5));
  std::array<char, 256> text{};
  const auto size = ::read(read.get(), text.data(), text.size());
  ASSERT_GT(size, 0);
  EXPECT_EQ(std::string_view(text.data(), static_cast<std::size_t>(size)),
            "[0 1] err\n[w1]:out\n[2 1] out\n[2 1] err\n");
}

TEST(Console, SaysAllInOrderToAReaderThatIsSlow) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd read(ends[0]);
  Fd write(ends[1]);
  Console console({.out_fd = write.get(), .err_fd = write.get()}, SystemClock());
  std::string expected;
  for (int i = 0; i < 40; ++i) {
    console.Say(std::string(5000, static_cast<char>('a' + i % 26)));
    // In two steps: gcc 12 takes the sum of the two for an overrun.
    expected.append(5000, static_cast<char>('a' + i % 26));
    expected += '\n';
  }
  std::string got;
  std::array<char, 7000> block{};
  while (got.size() < expected.size()) {
    console.Pump();
    const ssize_t n = ::read(read.get(), block.data(), block.size());
    ASSERT_GT(n, 0);
    got.append(block.data(), static_cast<std::size_t>(n));
  }
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace muster::agent
