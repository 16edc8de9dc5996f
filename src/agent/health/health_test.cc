// The checks of the doctor on machines that are made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "agent/health/doctor.h"
#include "agent/health/measuring_checks.h"
#include "agent/health/reading_checks.h"
#include "base/memory_files.h"

namespace muster::agent::health {
namespace {

using ::testing::HasSubstr;
using Verdict = Check::Verdict;

/// A healthy machine; a test breaks one thing of it.
class HealthTest : public ::testing::Test {
 protected:
  HealthTest()
      : sight_{.files = files_,
               .limit = [this](Resource resource) { return limits_[static_cast<int>(resource)]; },
               .clock = [this] { return clock_; },
               .space = [this](const std::string&) { return space_; }} {
    clock_ = {.known = true,
              .synchronised = true,
              .error = std::chrono::microseconds(120),
              .since_epoch = std::chrono::seconds(1'800'000'000)};
    for (Limit& limit : limits_) limit = {.soft = 65536, .hard = 1048576};
    space_ = Space{.size = 100_GiB, .free = 50_GiB};
  }

  void Write(const std::string& path, const std::string& text) {
    for (auto cut = path.find('/', 1); cut != std::string::npos; cut = path.find('/', cut + 1))
      (void)files_.MakeDirectory(path.substr(0, cut), 0755);
    auto file = files_.Create(path, {.append = false, .replace = true});
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->Write(AsBytes(text)));
    ASSERT_TRUE((*file)->Close());
  }

  MemoryFiles files_;
  Limit limits_[4];
  ClockSight clock_;
  std::optional<Space> space_;
  Sight sight_;
};

TEST_F(HealthTest, AClockIsSetAndSynchronised) {
  EXPECT_EQ(CheckClock(sight_).verdict, Verdict::kOk);
  clock_.synchronised = false;
  EXPECT_EQ(CheckClock(sight_).verdict, Verdict::kWarn);
  clock_.since_epoch = std::chrono::seconds(12);
  EXPECT_EQ(CheckClock(sight_).verdict, Verdict::kFail);
}

TEST_F(HealthTest, ALimitThatIsLowSaysWhoCanRaiseIt) {
  EXPECT_EQ(CheckFiles(sight_).verdict, Verdict::kOk);
  limits_[0].soft = 1024;
  EXPECT_EQ(CheckFiles(sight_).verdict, Verdict::kWarn);
  EXPECT_THAT(CheckFiles(sight_).advice, HasSubstr("ulimit -n 1048576"));
  limits_[0] = {.soft = 64, .hard = 64};
  EXPECT_EQ(CheckFiles(sight_).verdict, Verdict::kFail);
  EXPECT_THAT(CheckFiles(sight_).advice, HasSubstr("hard limit"));
  limits_[1] = {};
  EXPECT_EQ(CheckProcesses(sight_).measured, "unlimited (hard unlimited)");
}

TEST_F(HealthTest, LockedMemoryMattersBesideRdmaOnly) {
  EXPECT_EQ(CheckLockedMemory(sight_).verdict, Verdict::kOk);
  Write("/dev/infiniband/uverbs0", "");
  EXPECT_EQ(CheckLockedMemory(sight_).verdict, Verdict::kWarn);
  limits_[2] = {};
  EXPECT_EQ(CheckLockedMemory(sight_).verdict, Verdict::kOk);
}

TEST_F(HealthTest, CoresGoWhereTheKernelPutsThem) {
  Write("/proc/sys/kernel/core_pattern", "|/lib/systemd/systemd-coredump %P\n");
  limits_[3] = {.soft = 0, .hard = 0};
  EXPECT_THAT(CheckCores(sight_).measured, HasSubstr("piped: /lib/systemd"));
  Write("/proc/sys/kernel/core_pattern", "core\n");
  EXPECT_THAT(CheckCores(sight_).advice, HasSubstr("ulimit -c"));
}

TEST_F(HealthTest, TheGroupsLimitOfProcessesIsFoundInEitherHierarchy) {
  EXPECT_EQ(CheckPids(sight_).verdict, Verdict::kOk);
  Write("/proc/self/cgroup", "4:pids:/docker/x\n0::/user.slice/a\n");
  Write("/sys/fs/cgroup/user.slice/a/pids.max", "max\n");
  Write("/sys/fs/cgroup/user.slice/a/pids.current", "10\n");
  EXPECT_EQ(CheckPids(sight_).verdict, Verdict::kOk);
  Write("/sys/fs/cgroup/pids/docker/x/pids.max", "512\n");
  Write("/sys/fs/cgroup/pids/docker/x/pids.current", "100\n");
  EXPECT_EQ(CheckPids(sight_).verdict, Verdict::kWarn);
  EXPECT_EQ(CheckPids(sight_).measured, "100 of 512 used by /sys/fs/cgroup/pids/docker/x");
  Write("/sys/fs/cgroup/user.slice/a/pids.max", "12\n");
  EXPECT_EQ(CheckPids(sight_).verdict, Verdict::kFail);
}

TEST_F(HealthTest, YamaMayForbidStacks) {
  EXPECT_EQ(CheckPtrace(sight_).verdict, Verdict::kOk);
  Write("/proc/sys/kernel/yama/ptrace_scope", "1\n");
  EXPECT_EQ(CheckPtrace(sight_).verdict, Verdict::kOk);
  Write("/proc/sys/kernel/yama/ptrace_scope", "3\n");
  EXPECT_EQ(CheckPtrace(sight_).verdict, Verdict::kWarn);
}

TEST_F(HealthTest, MemoryIsWhatIsAvailable) {
  EXPECT_EQ(CheckMemory(sight_).verdict, Verdict::kSkipped);
  Write("/proc/meminfo", "MemTotal:  9 kB\nMemAvailable:   24000000 kB\n");
  EXPECT_EQ(CheckMemory(sight_).measured, "22.9 GiB available");
  Write("/proc/meminfo", "MemAvailable: 600000 kB\n");
  EXPECT_EQ(CheckMemory(sight_).verdict, Verdict::kWarn);
  Write("/proc/meminfo", "MemAvailable: 1000 kB\n");
  EXPECT_EQ(CheckMemory(sight_).verdict, Verdict::kFail);
}

TEST_F(HealthTest, GpusHaveADriverAndAllOfThemADevice) {
  EXPECT_EQ(CheckGpus(sight_).measured, "none");
  for (const char* device : {"0", "1"}) {
    const std::string folder = std::string("/sys/bus/pci/devices/0000:0") + device + ":00.0";
    Write(folder + "/vendor", "0x10de\n");
    Write(folder + "/class", "0x030200\n");
  }
  Write("/sys/bus/pci/devices/0000:07:00.0/vendor", "0x10de\n");
  Write("/sys/bus/pci/devices/0000:07:00.0/class", "0x068000\n");
  Write("/dev/nvidia0", "");
  Write("/dev/nvidiactl", "");
  EXPECT_EQ(CheckGpus(sight_).verdict, Verdict::kFail);
  Write("/proc/driver/nvidia/version", "NVRM version: 560.1\nGCC\n");
  EXPECT_EQ(CheckGpus(sight_).verdict, Verdict::kWarn);
  EXPECT_EQ(CheckGpus(sight_).measured, "1 of 2, NVRM version: 560.1");
  Write("/dev/nvidia1", "");
  EXPECT_EQ(CheckGpus(sight_).verdict, Verdict::kOk);
}

TEST_F(HealthTest, AFolderHasRoomAndKeepsWhatIsWritten) {
  const FolderNeeds needs{.name = "disk",
                          .folder = "/runs",
                          .probe = 64_KiB,
                          .fail_below = 1_GiB,
                          .warn_below = 10_GiB};
  EXPECT_EQ(CheckFolder(sight_, needs).verdict, Verdict::kFail);  // it is not there to write in
  ASSERT_TRUE(files_.MakeDirectory("/runs", 0700));
  EXPECT_EQ(CheckFolder(sight_, needs).verdict, Verdict::kOk);
  EXPECT_TRUE(files_.List("/runs")->empty());
  space_->free = 5_GiB;
  EXPECT_EQ(CheckFolder(sight_, needs).verdict, Verdict::kWarn);
  space_->free = 1_MiB;
  EXPECT_EQ(CheckFolder(sight_, needs).verdict, Verdict::kFail);
  space_.reset();
  EXPECT_EQ(CheckFolder(sight_, needs).measured, "/runs is not there");
}

TEST(JudgeCores, NamesTheSlowOnes) {
  EXPECT_EQ(JudgeCores({{0, 100}, {1, 90}, {2, 110}}).verdict, Verdict::kOk);
  const Check check = JudgeCores({{0, 100}, {1, 100}, {2, 40}, {3, 100}});
  EXPECT_EQ(check.verdict, Verdict::kWarn);
  EXPECT_EQ(check.measured, "4 cores, the slowest at 0.40 (slow: 2)");
  EXPECT_EQ(JudgeCores({}).verdict, Verdict::kSkipped);
  EXPECT_EQ(JudgeCores({{0, 0}}).verdict, Verdict::kWarn);
}

TEST(JudgeBandwidth, WarnsOfAMachineThatSwaps) {
  EXPECT_EQ(JudgeBandwidth(12e9).verdict, Verdict::kOk);
  EXPECT_EQ(JudgeBandwidth(2e8).verdict, Verdict::kWarn);
}

TEST(MeasuredChecks, FindThisMachineAtWork) {
  EXPECT_EQ(CheckLoopback().verdict, Verdict::kOk);
  EXPECT_GT(MeasureBandwidth(std::chrono::milliseconds(1)), 0);
  const auto cores = MeasureCores(std::chrono::milliseconds(5));
  EXPECT_FALSE(cores.empty());
  EXPECT_EQ(CheckPython("/no/such/python", {}, std::chrono::seconds(1)).verdict, Verdict::kFail);
}

TEST(CheckTable, IsReadableAndItsJsonParses) {
  const std::vector<Check> checks = {
      {.name = "nofile",
       .verdict = Verdict::kFail,
       .measured = "64",
       .limit = "256",
       .advice = "x"},
      {.name = "gpu", .verdict = Verdict::kOk, .measured = "none", .limit = "", .advice = ""}};
  EXPECT_EQ(
      CheckTable(checks),
      "fail     nofile        64; needs 256\n                       x\nok       gpu           "
      "none\n");
  const auto json = nlohmann::json::parse(CheckJson(checks));
  EXPECT_FALSE(json["healthy"]);
  EXPECT_EQ(json["checks"][0]["verdict"], "fail");
}

}  // namespace
}  // namespace muster::agent::health
