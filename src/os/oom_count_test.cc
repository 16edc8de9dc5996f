#include "os/oom_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace muster::os {
namespace {

class OomCountTest : public testing::Test {
 protected:
  OomCountTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~OomCountTest() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& path, const std::string& text) {
    const auto whole = std::filesystem::path(folder_) / path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  Result<OomCount> Open() { return OomCount::Open(folder_, folder_ + "/groups"); }

  const std::string folder_ = testing::TempDir() + "oom_count";
};

TEST_F(OomCountTest, ReadsTheGroupOfTheMemoryControllerOfV1) {
  Write("groups", "9:pids:/\n4:cpu,memory:/job/a\n0::/\n");
  Write("memory/job/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  Write("memory.events", "oom_kill 8\n");
  const auto count = Open();
  ASSERT_TRUE(count) << count.error().ToString();
  EXPECT_EQ(*count->Read(), 3);
  Write("memory/job/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  EXPECT_EQ(*count->Read(), 5);
}

TEST_F(OomCountTest, ReadsTheEventsOfV2) {
  Write("groups", "0::/user.slice/a\n");
  Write("user.slice/a/memory.events",
        "low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n");
  const auto count = Open();
  ASSERT_TRUE(count) << count.error().ToString();
  EXPECT_EQ(*count->Read(), 1) << "not the times that memory was short";
}

TEST_F(OomCountTest, TakesTheMountWhereAContainerHidesThePath) {
  Write("groups", "0::/../../docker/a\n");
  Write("memory.events", "oom_kill 2\n");
  const auto count = Open();
  ASSERT_TRUE(count) << count.error().ToString();
  EXPECT_EQ(*count->Read(), 2);
}

TEST_F(OomCountTest, SaysWhenNobodyCounts) {
  Write("groups", "4:memory:/a\n0::/a\nnonsense\n");
  Write("memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n");
  Write("a/memory.events", "oom_kill many\n");
  EXPECT_EQ(Open().error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace muster::os
