#include "base/durable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "base/fault_files.h"
#include "base/memory_files.h"

namespace muster {
namespace {

using testing::ElementsAre;
using Survives = MemoryFiles::Survives;

constexpr std::array kSurvivals{Survives::kNothingUnsynced, Survives::kNames,
                                Survives::kNamesAndFirstHalf};
constexpr std::array kFaults{Fault::kNoSpace, Fault::kIoError, Fault::kCrash};

std::string Read(FileSystem& files, const std::string& path) {
  return files.ReadAll(path, 1_MiB).value_or("(absent)");
}

/// A folder "d" with a file "state" that says "old", all of it on the disk.
void PutOld(MemoryFiles& files) {
  ASSERT_TRUE(files.MakeDirectory("d", 0755));
  ASSERT_TRUE(files.SyncDirectory("/"));
  ASSERT_TRUE(WriteDurably(files, "d/state", AsBytes("old")));
}

/// Runs `action` with every fault at every operation and hands what is left, before and after a
/// power cut in each of the ways, to `check(files, result of the action)`.
void AtEveryOperation(const std::function<void(MemoryFiles&)>& prepare,
                      const std::function<Status(FileSystem&)>& action,
                      const std::function<void(FileSystem&, const Status&)>& check) {
  MemoryFiles undisturbed;
  prepare(undisturbed);
  FaultFiles counting(undisturbed, {});
  ASSERT_TRUE(action(counting));
  ASSERT_GT(counting.operations(), 0u);
  for (std::uint64_t at = 0; at <= counting.operations(); ++at) {
    for (const Fault fault : kFaults) {
      for (const Survives survives : kSurvivals) {
        SCOPED_TRACE(testing::Message()
                     << "operation " << at << " fault " << static_cast<int>(fault) << " survives "
                     << static_cast<int>(survives));
        MemoryFiles disk;
        prepare(disk);
        FaultFiles files(disk, {.at = at, .fault = fault});
        const Status result = action(files);
        if (at == counting.operations()) {
          EXPECT_TRUE(result);
        }
        check(disk, result);
        disk.Crash(survives);
        check(disk, result);
      }
    }
  }
}

TEST(WriteDurably, LeavesTheOldOrTheNewContentWhateverBreaksWhenever) {
  AtEveryOperation(
      PutOld, [](FileSystem& files) { return WriteDurably(files, "d/state", AsBytes("new")); },
      [](FileSystem& files, const Status& result) {
        const std::string content = Read(files, "d/state");
        if (result) {
          EXPECT_EQ(content, "new");
        } else {
          EXPECT_THAT(content, testing::AnyOf("old", "new"));
        }
      });
}

TEST(WriteDurably, MakesANewFileWholeOrNotAtAll) {
  AtEveryOperation(
      PutOld, [](FileSystem& files) { return WriteDurably(files, "d/fresh", AsBytes("content")); },
      [](FileSystem& files, const Status& result) {
        const std::string content = Read(files, "d/fresh");
        if (result) {
          EXPECT_EQ(content, "content");
        } else {
          EXPECT_THAT(content, testing::AnyOf("(absent)", "content"));
        }
        EXPECT_EQ(Read(files, "d/state"), "old");
      });
}

TEST(WriteDurably, NamesTheFileThatWasAskedForAndNotItsTemporaryOne) {
  const Status written = WriteDurably(PosixFiles(), "/nowhere/at/all", AsBytes("x"));
  ASSERT_FALSE(written.has_value());
  EXPECT_NE(written.error().message().find("/nowhere/at/all"), std::string::npos);
  EXPECT_EQ(written.error().message().find(".tmp"), std::string::npos);
}

TEST(WriteDurably, CleansUpItsTemporaryFileWhenTheDiskIsFull) {
  for (std::uint64_t at = 1; at < 5; ++at) {
    MemoryFiles disk;
    PutOld(disk);
    FaultFiles files(disk, {.at = at, .fault = Fault::kNoSpace, .lasting = true});
    const Status written = WriteDurably(files, "d/state", AsBytes("new"));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code(), Code::kExhausted);
    EXPECT_THAT(*disk.List("d"), ElementsAre("state"));
    EXPECT_EQ(Read(disk, "d/state"), "old");
  }
}

TEST(WriteDurably, ReplacesWhatAnEarlierCrashLeft) {
  MemoryFiles files;
  PutOld(files);
  ASSERT_TRUE(files.Create("d/state.tmp", {}));
  ASSERT_TRUE(WriteDurably(files, "d/state", AsBytes("new")));
  EXPECT_EQ(Read(files, "d/state"), "new");
  EXPECT_THAT(*files.List("d"), ElementsAre("state"));
}

/// Two finished folders, d/new with one file and d/out with another.
void PutTwoFolders(MemoryFiles& files) {
  PutOld(files);
  for (const std::string name : {"d/new", "d/out"}) {
    ASSERT_TRUE(files.MakeDirectory(name, 0755));
    ASSERT_TRUE(WriteDurably(files, name + "/file", AsBytes(name)));
  }
  ASSERT_TRUE(files.SyncDirectory("d"));
}

TEST(CommitRename, RefusesANameThatIsTaken) {
  MemoryFiles files;
  PutTwoFolders(files);
  const Status committed = CommitRename(files, "d/new", "d/out");
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code(), Code::kAlreadyExists);
  EXPECT_EQ(Read(files, "d/out/file"), "d/out");
  EXPECT_EQ(Read(files, "d/new/file"), "d/new");
}

TEST(CommitRename, ShowsTheWholeFolderUnderItsNewNameOrTheOldOne) {
  AtEveryOperation(
      PutTwoFolders, [](FileSystem& files) { return CommitRename(files, "d/new", "d/final"); },
      [](FileSystem& files, const Status& result) {
        const bool moved = files.Exists("d/final");
        EXPECT_NE(moved, files.Exists("d/new"));
        if (result) {
          EXPECT_TRUE(moved);
        }
        EXPECT_EQ(Read(files, moved ? "d/final/file" : "d/new/file"), "d/new");
      });
}

TEST(CommitReplace, KeepsTheOldOrTheNewFolderInPlaceAtEveryInstant) {
  AtEveryOperation(
      PutTwoFolders,
      [](FileSystem& files) -> Status {
        MUSTER_TRY(CommitReplace(files, "d/new", "d/out"));
        return Ok();
      },
      [](FileSystem& files, const Status& result) {
        const std::string content = Read(files, "d/out/file");
        if (result) {
          EXPECT_EQ(content, "d/new");
        } else {
          EXPECT_THAT(content, testing::AnyOf("d/out", "d/new"));
        }
      });
}

TEST(CommitReplace, IsDoneWhenOnlyTheOldOneCannotBeRemoved) {
  for (const Fault fault : {Fault::kNoSpace, Fault::kIoError}) {
    MemoryFiles disk;
    PutTwoFolders(disk);
    FaultFiles counted(disk, {});
    ASSERT_TRUE(CommitReplace(counted, "d/new", "d/out"));
    MemoryFiles again;
    PutTwoFolders(again);
    FaultFiles files(again, {.at = counted.operations() - 1, .fault = fault});
    const auto replaced = CommitReplace(files, "d/new", "d/out");
    ASSERT_TRUE(replaced);
    EXPECT_EQ(replaced->left, "d/new");
    EXPECT_FALSE(replaced->why.empty());
    EXPECT_EQ(Read(again, "d/out/file"), "d/new");
  }
}

TEST(CommitReplace, NeedsNothingToReplace) {
  MemoryFiles files;
  PutTwoFolders(files);
  ASSERT_TRUE(CommitReplace(files, "d/new", "d/fresh"));
  EXPECT_EQ(Read(files, "d/fresh/file"), "d/new");
}

TEST(CommitReplace, FindsAWayRoundAFileSystemThatCannotExchange) {
  MemoryFiles disk;
  PutTwoFolders(disk);
  FaultFiles files(disk, {.fault = Fault::kNoExchange});
  ASSERT_TRUE(CommitReplace(files, "d/new", "d/out"));
  EXPECT_EQ(Read(disk, "d/out/file"), "d/new");
  EXPECT_THAT(*disk.List("d"), ElementsAre("out", "state"));
  disk.Crash(Survives::kNothingUnsynced);
  EXPECT_EQ(Read(disk, "d/out/file"), "d/new");
}

TEST(ParentOf, HandlesRootsAndTrailingSlashes) {
  EXPECT_EQ(ParentOf("a/b/c"), "a/b");
  EXPECT_EQ(ParentOf("a/b/"), "a");
  EXPECT_EQ(ParentOf("a//b"), "a");
  EXPECT_EQ(ParentOf("c"), ".");
  EXPECT_EQ(ParentOf(""), ".");
  EXPECT_EQ(ParentOf("/c"), "/");
  EXPECT_EQ(ParentOf("///"), "/");
}

TEST(NameOf, IsTheLastComponent) {
  EXPECT_EQ(NameOf("a/b/c"), "c");
  EXPECT_EQ(NameOf("a/b/"), "b");
  EXPECT_EQ(NameOf("c"), "c");
  EXPECT_EQ(NameOf(""), "");
  EXPECT_EQ(NameOf("//"), "/");
}

}  // namespace
}  // namespace muster
