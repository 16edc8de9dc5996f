#include "base/fault_files.h"

#include <gtest/gtest.h>

#include "base/memory_files.h"

namespace muster {
namespace {

Status WriteTwice(FileSystem& files) {
  const auto file = MUSTER_TRY(files.Create("f", {.replace = true}));
  MUSTER_TRY(file->Write(AsBytes("1234")));
  MUSTER_TRY(file->Write(AsBytes("5678")));
  return file->Close();
}

std::string Left(MemoryFiles& disk) { return disk.ReadAll("f", 1_MiB).value_or("(absent)"); }

TEST(FaultFiles, CountsAndPassesThroughWhatItDoesNotBreak) {
  MemoryFiles disk;
  FaultFiles files(disk, {});
  EXPECT_TRUE(WriteTwice(files));
  EXPECT_EQ(files.operations(), 4u);
  EXPECT_EQ(*files.ReadAll("f", 1_MiB), "12345678");
}

TEST(FaultFiles, LeavesHalfAWriteWhenTheDiskIsFull) {
  MemoryFiles disk;
  FaultFiles files(disk, {.at = 2, .fault = Fault::kNoSpace});
  EXPECT_EQ(WriteTwice(files).error().code(), Code::kExhausted);
  EXPECT_EQ(Left(disk), "123456");
  EXPECT_TRUE(WriteTwice(files));  // it struck once
}

TEST(FaultFiles, StaysFullWhenAskedTo) {
  MemoryFiles disk;
  FaultFiles files(disk, {.at = 1, .fault = Fault::kNoSpace, .lasting = true});
  EXPECT_FALSE(WriteTwice(files));
  EXPECT_FALSE(WriteTwice(files));
  EXPECT_TRUE(files.RemoveAll("f"));
  EXPECT_EQ(Left(disk), "(absent)");
}

TEST(FaultFiles, DoesNothingAfterACrash) {
  MemoryFiles disk;
  FaultFiles files(disk, {.at = 2, .fault = Fault::kCrash});
  EXPECT_FALSE(WriteTwice(files));
  EXPECT_FALSE(files.RemoveAll("f"));
  EXPECT_EQ(Left(disk), "1234");
}

TEST(FaultFiles, CanBeAFileSystemWithoutExchange) {
  MemoryFiles disk;
  FaultFiles files(disk, {.fault = Fault::kNoExchange});
  EXPECT_TRUE(WriteTwice(files));
  EXPECT_EQ(files.Exchange("f", "f").error().code(), Code::kPrecondition);
}

TEST(MemoryFiles, ForgetsInACrashWhatWasNotSynced) {
  using Survives = MemoryFiles::Survives;
  for (const Survives survives : {Survives::kNothingUnsynced, Survives::kNames}) {
    MemoryFiles disk;
    const auto file = *disk.Create("f", {});
    ASSERT_TRUE(file->Write(AsBytes("synced")));
    ASSERT_TRUE(file->Sync());
    ASSERT_TRUE(disk.SyncDirectory("/"));
    ASSERT_TRUE(file->Write(AsBytes(" and not")));
    ASSERT_TRUE(disk.Rename("f", "g"));
    disk.Crash(survives);
    const bool renamed = survives == Survives::kNames;
    EXPECT_EQ(disk.Exists("f"), !renamed);
    EXPECT_EQ(*disk.ReadAll(renamed ? "g" : "f", 1_MiB), "synced");
  }
  MemoryFiles disk;
  ASSERT_TRUE((*disk.Create("f", {}))->Write(AsBytes("123456")));
  disk.Crash(Survives::kNamesAndFirstHalf);
  EXPECT_EQ(*disk.ReadAll("f", 1_MiB), "123");
}

}  // namespace
}  // namespace muster
