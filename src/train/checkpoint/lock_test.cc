// One writer a folder: whoever comes second is told who is first, and a dead holder holds nothing.
#include "train/checkpoint/lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <optional>

#include "train/checkpoint/sample_test.h"

namespace muster::checkpoint {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kNoPatience{0};

TEST(FolderLock, TellsTheSecondWhoHoldsIt) {
  const TemporaryFolder folder;
  auto first = FolderLock::Take(folder.path(), "r1", kNoPatience);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_TRUE(first->held());
  const auto second = FolderLock::Take(folder.path(), "r2", kNoPatience);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kConflict);
  EXPECT_THAT(second.error().message(), HasSubstr(folder.path()));
  EXPECT_THAT(second.error().message(),
              HasSubstr("(pid " + std::to_string(::getpid()) + ", run r1)"));
}

TEST(FolderLock, IsFreeWhenItsHolderLetsGoOfIt) {
  const TemporaryFolder folder;
  for (const char* run : {"a-longer-name", "b"}) {
    auto lock = FolderLock::Take(folder.path(), run, kNoPatience);
    ASSERT_TRUE(lock);
    const auto other = FolderLock::Take(folder.path(), "x", kNoPatience);
    EXPECT_THAT(other.error().message(), HasSubstr("run " + std::string(run) + ")"));
  }
}

TEST(FolderLock, WaitsForAHolderThatIsKilled) {
  const TemporaryFolder folder;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto lock = FolderLock::Take(folder.path(), "dying", kNoPatience);
    if (!lock || ::write(ends[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(reading.get(), &byte, 1), 1);
  EXPECT_FALSE(FolderLock::Take(folder.path(), "next", kNoPatience));
  ::kill(holder, SIGKILL);
  EXPECT_TRUE(FolderLock::Take(folder.path(), "next", std::chrono::seconds(30)));
  ::waitpid(holder, nullptr, 0);
}

TEST(FolderLock, StaysWithARunWhoseHolderIsBeingReplaced) {
  const TemporaryFolder folder;
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    for (;;) ::pause();
  }
  {
    EXPECT_TRUE(FolderLock::Take(folder.path(), "r1", kNoPatience, keeper));
  }  // its rank 0 dies
  const auto stranger = FolderLock::Take(folder.path(), "r2", kNoPatience);
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code(), Code::kConflict);
  EXPECT_THAT(stranger.error().message(), HasSubstr("run r1)"));
  {
    EXPECT_TRUE(FolderLock::Take(folder.path(), "r1", kNoPatience, keeper));
  }  // the next rank 0
  ::kill(keeper, SIGKILL);
  ::waitpid(keeper, nullptr, 0);
  EXPECT_TRUE(FolderLock::Take(folder.path(), "r2", kNoPatience));
}

TEST(FolderLock, PrintsNothingStrangeFromTheFile) {
  const TemporaryFolder folder;
  const auto lock = FolderLock::Take(folder.path(), "r1", kNoPatience);
  ASSERT_TRUE(lock);
  std::ofstream(folder / ".lock", std::ios::binary) << "\x1b[31mred\n";
  const auto other = FolderLock::Take(folder.path(), "r2", kNoPatience);
  EXPECT_THAT(other.error().message(), HasSubstr("is in use by another run"));
  EXPECT_EQ(other.error().message().find('\x1b'), std::string::npos);
}

TEST(FolderLock, NeedsTheFolder) {
  const TemporaryFolder folder;
  const auto lock = FolderLock::Take(folder / "absent", "r", kNoPatience);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace muster::checkpoint
