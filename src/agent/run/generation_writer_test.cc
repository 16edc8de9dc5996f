#include "agent/run/generation_writer.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "agent/testing/hung_disk.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;

TEST(GenerationWriter, TellsWhatIsOnDisk) {
  const TemporaryFolder folder;
  std::promise<Generation> told;
  auto writer = *GenerationWriter::Start(PosixFiles(), folder.path(),
                                         [&](Generation generation, Status written) {
                                           if (written && generation == Generation(12))
                                             told.set_value(generation);
                                         });
  writer->Write(Generation(11));
  writer->Write(Generation(12));
  auto future = told.get_future();
  ASSERT_EQ(future.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(*PosixFiles().ReadAll(folder.path() + "/generation", 1_KiB), "12\n");
  EXPECT_TRUE(writer->Stop(seconds(5)));
  EXPECT_TRUE(writer->Stop(seconds(5)));
}

TEST(GenerationWriter, AWriteThatHangsStopsNobodyAndIsNotHeardOfAgain) {
  const TemporaryFolder folder;
  HungDisk disk;
  const auto told = std::make_shared<std::atomic<bool>>(false);
  const std::weak_ptr<std::atomic<bool>> still_used = told;
  {
    auto writer =
        *GenerationWriter::Start(disk, folder.path(), [told](Generation, Status) { *told = true; });
    writer->Write(Generation(1));
    disk.AwaitHang();
    EXPECT_FALSE(writer->Stop(seconds(0)));
    EXPECT_FALSE(writer->Stop(seconds(5))) << "the first answer stands";
  }
  EXPECT_EQ(still_used.use_count(), 2) << "the thread keeps what it uses";
  disk.LetGo();
  const Instant deadline = MonotonicClock::now() + seconds(10);
  while (still_used.use_count() > 1 && MonotonicClock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(still_used.use_count(), 1);
  EXPECT_FALSE(*told);
}

}  // namespace
}  // namespace muster::agent
