#include "agent/run/committed.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "agent/testing/hung_disk.h"
#include "train/checkpoint/sample_test.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;

void SaveStep(const std::string& folder, std::uint64_t step) {
  const checkpoint::Sample sample(7, 16);
  for (const auto& report : checkpoint::SaveTogether(sample, folder, step, 1)) {
    ASSERT_TRUE(report) << report.error().message();
  }
}

TEST(CommittedSteps, NamesTheNewestThatIsNewAndWhole) {
  const TemporaryFolder folder;
  const std::string saved = folder.path() + "/checkpoints";
  SaveStep(saved, 500);  // of the run before, further than this one
  CommittedSteps committed(PosixFiles(), saved, seconds(10));
  EXPECT_EQ(committed.Newest(seconds(10)), std::nullopt);
  SaveStep(saved, 10);
  SaveStep(saved, 20);
  EXPECT_EQ(committed.Newest(seconds(10)), 20U);
  SaveStep(saved, 30);
  std::filesystem::remove(saved + "/step-000000000030/manifest.crc32c");
  std::filesystem::create_directory(saved + "/step-000000000040.run.g1.tmp");
  EXPECT_EQ(committed.Newest(seconds(10)), 20U) << "what cannot be resumed from is none";
  EXPECT_FALSE(committed.hangs());
}

TEST(CommittedSteps, AFolderThatDoesNotExistYetHoldsNothing) {
  const TemporaryFolder folder;
  const std::string saved = folder.path() + "/a/b";
  CommittedSteps committed(PosixFiles(), saved, seconds(10));
  EXPECT_EQ(committed.Newest(seconds(10)), std::nullopt);
  SaveStep(saved, 10);
  EXPECT_EQ(committed.Newest(seconds(10)), 10U);
  EXPECT_EQ(CommittedSteps(PosixFiles(), "", seconds(10)).Newest(seconds(10)), std::nullopt);
}

TEST(CommittedSteps, AFolderThatHangsHoldsNobodyUp) {
  HungDisk disk;
  disk.hang_lists = true;
  {
    CommittedSteps committed(disk, "/tmp", std::chrono::milliseconds(1));
    EXPECT_TRUE(committed.hangs());
    EXPECT_EQ(committed.Newest(seconds(10)), std::nullopt);
  }
  disk.AwaitHang();
  disk.LetGo();
  disk.AwaitEnd();
}

}  // namespace
}  // namespace muster::agent
