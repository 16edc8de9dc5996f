// The disk fills up, returns EIO or the process dies at every single operation of a pack that
// replaces a dataset: what was there stays there, whole, until the new one is.
#include <gtest/gtest.h>

#include "base/fault_files.h"
#include "base/no_threads_test.h"
#include "data/dataset.h"
#include "data/pack/packer.h"
#include "data/testing/sample_data.h"
#include "data/verify/verify.h"

namespace muster::data {
namespace {

constexpr std::uint32_t kOldRows = 30, kNewRows = 250;

class BrokenDisk : public testing::TestWithParam<FaultPlan> {
 protected:
  Status PackNew(FileSystem& files, bool durable = true) {
    auto input = MUSTER_TRY(OpenInput(folder_ / "new", {}));
    MUSTER_TRY(Pack(files, input, set_,
                    {.threads = 2, .shard_size = {40'000}, .replace = true, .durable = durable}));
    return Ok();
  }
  void SetUp() override {
    set_ = PackSample(folder_, kOldRows);
    WriteFile(folder_ / "new/train-images-idx3-ubyte", IdxImages(kNewRows));
    WriteFile(folder_ / "new/train-labels-idx1-ubyte", IdxLabels(kNewRows));
  }
  /// Rows of the set, after every byte of it was checked.
  std::uint64_t WholeRows() {
    const VerifyReport report = VerifySplit(FindSplits(set_)->front());
    EXPECT_EQ(report.damages, 0u) << report.first[0].ToString();
    return report.rows;
  }
  TempFolder folder_;
  std::string set_;
};

TEST_P(BrokenDisk, LeavesTheOldSetOrTheNewOneWhole) {
  std::uint64_t failed = 0;
  for (std::uint64_t n = 0;; ++n) {
    SetUp();
    FaultPlan plan = GetParam();
    plan.at = n;
    FaultFiles files(PosixFiles(), plan);
    const Status packed = PackNew(files);
    const bool reached = files.operations() > n;
    const std::uint64_t rows = WholeRows();
    if (packed) {
      ASSERT_EQ(rows, kNewRows) << n;
    } else {
      ++failed;
      ASSERT_TRUE(rows == kOldRows || rows == kNewRows) << n;
      ASSERT_FALSE(packed.error().message().empty());
    }
    ASSERT_TRUE(PackNew(PosixFiles(), false)) << n;  // nothing that was left behind is in the way
    ASSERT_EQ(WholeRows(), kNewRows);
    ASSERT_FALSE(PosixFiles().Exists(folder_ / ".set.muster-part"));
    if (!reached) break;
  }
  // Without an exchange there is a way round, so nothing fails.
  if (GetParam().fault != Fault::kNoExchange) {
    EXPECT_GT(failed, 20u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BrokenDisk,
                         testing::Values(FaultPlan{.fault = Fault::kNoSpace},
                                         FaultPlan{.fault = Fault::kNoSpace, .lasting = true},
                                         FaultPlan{.fault = Fault::kIoError},
                                         FaultPlan{.fault = Fault::kCrash},
                                         FaultPlan{.fault = Fault::kNoExchange}));

TEST(PackFaults, SaysThatNoThreadCouldBeStartedAndLeavesNothing) {
  const TempFolder folder;
  WriteFile(folder / "idx/train-images-idx3-ubyte", IdxImages(20));
  WriteFile(folder / "idx/train-labels-idx1-ubyte", IdxLabels(20));
  auto input = OpenInput(folder / "idx", {});
  const NoThreads limit;
  const auto packed = Pack(PosixFiles(), *input, folder / "set", {.threads = 3, .durable = false});
  ASSERT_FALSE(packed);
  EXPECT_NE(packed.error().message().find("0 of 3 threads"), std::string::npos)
      << packed.error().message();
  EXPECT_FALSE(PosixFiles().Exists(folder / "set"));
  EXPECT_FALSE(PosixFiles().Exists(folder / ".set.muster-part"));
}

}  // namespace
}  // namespace muster::data
