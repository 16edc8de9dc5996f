#include "os/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_system.h"
#include "os/process.h"
#include "os/procfs.h"

namespace muster::os {
namespace {

using std::chrono::seconds;

TEST(ParseCgroupMount, FindsTheUnifiedHierarchyAloneOrHybrid) {
  EXPECT_EQ(
      ParseCgroupMount("30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"),
      "/sys/fs/cgroup");
  EXPECT_EQ(ParseCgroupMount("31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                             "32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n"),
            "/sys/fs/cgroup/unified");
  EXPECT_EQ(ParseCgroupMount("1 2 0:3 / /with\\040space rw - cgroup2 none rw\n"), "/with space");
}

TEST(ParseCgroupMount, FindsNothingWhereThereIsNone) {
  EXPECT_FALSE(ParseCgroupMount(""));
  EXPECT_FALSE(
      ParseCgroupMount("31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"));
  EXPECT_FALSE(ParseCgroupMount("32 30 0:28 /sub /mnt rw - cgroup2 none rw\n"));
  EXPECT_FALSE(ParseCgroupMount("- cgroup2 \n - cgroup2 \nx - cgroup2"));
}

TEST(ParseOwnCgroup, TakesTheUnifiedLine) {
  EXPECT_EQ(ParseOwnCgroup("4:memory:/a\n0::/user.slice/x\n"), "/user.slice/x");
  EXPECT_EQ(ParseOwnCgroup("0::/\n"), "/");
  EXPECT_FALSE(ParseOwnCgroup("4:memory:/a\n"));
  EXPECT_FALSE(ParseOwnCgroup("0::/../outside\n"));
}

class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto parent = FindWritableCgroup();
    if (!parent) GTEST_SKIP() << "no writable cgroup v2 here";
    parent_ = *parent;
    name_ = "muster-test-" + std::to_string(::getpid());
    auto group = Cgroup::Create(parent_, name_);
    ASSERT_TRUE(group) << group.error().ToString();
    group_.emplace(std::move(*group));
  }
  void TearDown() override {
    if (!group_) return;
    (void)group_->Kill();
    (void)group_->WaitEmpty(seconds(10));
    (void)group_->Remove();
    EXPECT_FALSE(PosixFiles().Exists(group_->path()));
  }
  Process SpawnInside(const std::string& script) {
    return *Spawn(
        {.program = "/bin/sh", .arguments = {"sh", "-c", script}, .cgroup_fd = group_->fd()});
  }
  std::string parent_;
  std::string name_;
  std::optional<Cgroup> group_;
};

TEST_F(CgroupTest, HoldsWhatIsBornInsideIt) {
  EXPECT_FALSE(*group_->Populated());
  EXPECT_TRUE(*group_->WaitEmpty(seconds(0)));
  const Process process = SpawnInside("exec sleep 1000");
  EXPECT_THAT(*group_->Pids(), testing::ElementsAre(process.pid()));
  EXPECT_TRUE(*group_->Populated());
  EXPECT_FALSE(*group_->WaitEmpty(seconds(0)));
  EXPECT_EQ(group_->Remove().error().code(), Code::kConflict);
  ASSERT_TRUE(group_->Kill());
  EXPECT_EQ(process.Wait(seconds(20))->value().signal, SIGKILL);
  EXPECT_TRUE(*group_->WaitEmpty(seconds(20)));
}

TEST_F(CgroupTest, KillsChildrenThatEscapedTheirSessionAndParent) {
  // Double fork, new session, TERM ignored: no other way finds them all.
  const Process process = SpawnInside(
      "trap '' TERM; for i in 1 2 3 4 5 6 7 8; do (setsid sh -c 'trap \"\" TERM; sleep 1000' &) ; "
      "done");
  ASSERT_TRUE(process.Wait(seconds(20))->value().ok());
  EXPECT_TRUE(*group_->Populated());
  ASSERT_TRUE(group_->Kill());
  EXPECT_TRUE(*group_->WaitEmpty(seconds(20)));
  EXPECT_TRUE(group_->Pids()->empty());
}

TEST_F(CgroupTest, KillsFrozenProcesses) {
  const Process process = SpawnInside("exec sleep 1000");
  ASSERT_TRUE(group_->Freeze(true));
  ASSERT_TRUE(group_->Kill());
  EXPECT_TRUE(*group_->WaitEmpty(seconds(20)));
  EXPECT_EQ(process.Wait(seconds(20))->value().signal, SIGKILL);
}

TEST_F(CgroupTest, FreezesAndResumes) {
  const Process process = SpawnInside("exit 3");
  const Process frozen = SpawnInside("sleep 0; exit 4");
  ASSERT_TRUE(group_->Freeze(true));
  ASSERT_TRUE(group_->Freeze(false));
  EXPECT_EQ(process.Wait(seconds(20))->value().code, 3);
  EXPECT_EQ(frozen.Wait(seconds(20))->value().code, 4);
}

TEST_F(CgroupTest, RemovesGroupsThatWorkersMadeBelow) {
  ASSERT_EQ(::mkdir((group_->path() + "/a").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir((group_->path() + "/a/b").c_str(), 0755), 0);
  ASSERT_TRUE(group_->Remove());
  EXPECT_FALSE(PosixFiles().Exists(group_->path()));
  EXPECT_TRUE(group_->Remove());  // again is fine
}

TEST_F(CgroupTest, RefusesBadNamesAndExistingGroups) {
  EXPECT_EQ(Cgroup::Create(parent_, name_).error().code(), Code::kAlreadyExists);
  for (const char* name : {"", ".", "..", "a/b", "../x"}) {
    EXPECT_EQ(Cgroup::Create(parent_, name).error().code(), Code::kInvalid) << name;
  }
}

TEST(Cgroup, NeedsARealHierarchy) {
  const std::string folder = testing::TempDir() + "/muster_no_cgroup_" + std::to_string(::getpid());
  ASSERT_TRUE(PosixFiles().MakeDirectory(folder, 0755));
  const auto group = Cgroup::Create(folder, "x");
  EXPECT_FALSE(group);
  EXPECT_TRUE(PosixFiles().List(folder)->empty());
  (void)PosixFiles().RemoveAll(folder);
}

}  // namespace
}  // namespace muster::os
