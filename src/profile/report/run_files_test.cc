#include "profile/report/run_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "profile/report/scratch.h"

namespace muster::profile {
namespace {

using testing::ElementsAre;

class RunFilesTest : public testing::Test {
 protected:
  void Put(const std::string& name, std::string_view text) {
    std::ofstream(scratch_.path() + "/" + name) << text;
  }
  std::vector<std::string> Lines(const char* name, LinesRead& read, Bytes limit = 1_MiB) {
    std::vector<std::string> lines;
    const auto done =
        files().ForEachLine(name, limit, [&](std::string_view line) { lines.emplace_back(line); });
    EXPECT_TRUE(done.has_value());
    if (done) read = *done;
    return lines;
  }
  RunFiles files() { return std::move(*RunFiles::Open(scratch_.path())); }
  Scratch scratch_;
};

TEST_F(RunFilesTest, SkipsATornLastLine) {
  Put("f", "one\n\ntwo\nthr");
  LinesRead read;
  EXPECT_THAT(Lines("f", read), ElementsAre("one", "", "two"));
  EXPECT_TRUE(read.torn);
  EXPECT_FALSE(read.cut);
}

TEST_F(RunFilesTest, SkipsLinesThatAreTooLong) {
  Put("f", "a\n" + std::string(kMaxLineBytes + 1, 'x') + "\nb\n" + std::string(kMaxLineBytes, 'y') +
               "\n");
  LinesRead read;
  EXPECT_THAT(Lines("f", read), ElementsAre("a", "b", std::string(kMaxLineBytes, 'y')));
  EXPECT_EQ(read.too_long, 1U);
  EXPECT_FALSE(read.torn);
}

TEST_F(RunFilesTest, StopsAtTheLimit) {
  Put("f", std::string(1 << 20, '\n'));
  LinesRead read;
  EXPECT_EQ(Lines("f", read, 600_KiB).size(), 512U << 10);
  EXPECT_TRUE(read.cut);
}

TEST_F(RunFilesTest, FollowsNoLinkAndLeavesTheFolderByNoName) {
  Put("f", "text");
  std::filesystem::create_symlink("f", scratch_.path() + "/link");
  std::filesystem::create_directory(scratch_.path() + "/d");
  std::filesystem::create_directory_symlink("d", scratch_.path() + "/dlink");
  Put("d/f", "text");
  EXPECT_TRUE(files().ReadWhole("d/f", 1_KiB).has_value());
  for (const char* path : {"link", "dlink/f", "../x", "d/../f", "/etc/hostname", "", "d", "."}) {
    EXPECT_FALSE(files().ReadWhole(path, 1_KiB).has_value()) << path;
  }
}

TEST_F(RunFilesTest, DoesNotHangOnAFifo) {
  ASSERT_EQ(::mkfifo((scratch_.path() + "/fifo").c_str(), 0600), 0);
  EXPECT_FALSE(files().ReadWhole("fifo", 1_KiB).has_value());
}

TEST_F(RunFilesTest, CapsWhatItReads) {
  Put("f", "0123456789");
  EXPECT_EQ(*files().ReadWhole("f", Bytes{10}), "0123456789");
  EXPECT_EQ(files().ReadWhole("f", Bytes{9}).error().code(), Code::kPrecondition);
  EXPECT_EQ(*files().ReadTail("f", Bytes{4}), "6789");
  EXPECT_EQ(*files().ReadTail("f", Bytes{40}), "0123456789");
  EXPECT_EQ(files().ReadWhole("absent", 1_KiB).error().code(), Code::kNotFound);
}

TEST_F(RunFilesTest, SeesWhetherTheLockIsHeld) {
  EXPECT_FALSE(files().LockHeld());
  Put("lock", "");
  EXPECT_FALSE(files().LockHeld());
  const Fd holder(::open((scratch_.path() + "/lock").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(holder.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(files().LockHeld());
}

TEST(RunFilesOpen, SaysWhatIsNoRunFolder) {
  EXPECT_EQ(RunFiles::Open("/nowhere/at/all").error().code(), Code::kNotFound);
  EXPECT_EQ(RunFiles::Open("/dev/null").error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace muster::profile
