// The disk fills up, returns EIO or the process dies at every single operation of a pack that
// replaces a dataset: what was there stays there, whole, until the new one is.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "base/fault_files.h"
#include "base/no_threads_test.h"
#include "data/dataset.h"
#include "data/pack/output_folder.h"
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

/// The machine's files, with another process that acts at the worst moment.
class Meddled final : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                               const CreateOptions& options) override {
    return PosixFiles().Create(path, options);
  }
  Result<std::string> ReadAll(const std::string& path, Bytes limit) override {
    return PosixFiles().ReadAll(path, limit);
  }
  Status MakeDirectory(const std::string& path, unsigned mode) override {
    MUSTER_TRY(PosixFiles().MakeDirectory(path, mode));
    if (after_making) after_making(path);
    return Ok();
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return PosixFiles().Rename(from, to);
  }
  Status Exchange(const std::string& a, const std::string& b) override {
    MUSTER_TRY(PosixFiles().Exchange(a, b));
    if (after_exchange) after_exchange();
    return Ok();
  }
  Status SyncDirectory(const std::string& path) override {
    return PosixFiles().SyncDirectory(path);
  }
  Status RemoveAll(const std::string& path) override {
    if (may_remove || !path.ends_with(".muster-part")) return PosixFiles().RemoveAll(path);
    return ErrnoError("remove " + path, EACCES);
  }
  Result<std::vector<std::string>> List(const std::string& path) override {
    return PosixFiles().List(path);
  }
  bool Exists(const std::string& path) override { return PosixFiles().Exists(path); }

  std::function<void(const std::string&)> after_making;
  std::function<void()> after_exchange;
  bool may_remove = true;
};

TEST(OutputFolder, IsDoneWhenOnlyTheOldSetCannotBeRemoved) {
  for (const bool durable : {true, false}) {
    const TempFolder folder;
    PackSample(folder, kOldRows);
    WriteFile(folder / "new/train-images-idx3-ubyte", IdxImages(kNewRows));
    WriteFile(folder / "new/train-labels-idx1-ubyte", IdxLabels(kNewRows));
    Meddled files;
    files.may_remove = false;
    const PackOptions options{.replace = true, .durable = durable};
    auto input = OpenInput(folder / "new", {});
    const auto packed = Pack(files, *input, folder / "set", options);
    ASSERT_TRUE(packed) << packed.error().ToString();
    const std::string left = folder / ".set.muster-part";
    EXPECT_NE(packed->left_behind.find(left), std::string::npos) << packed->left_behind;
    EXPECT_EQ((*Dataset::Open(folder / "set"))->rows(), kNewRows);
    auto again = OpenInput(folder / "new", {});
    const auto stuck = Pack(files, *again, folder / "set", options);
    ASSERT_FALSE(stuck);
    EXPECT_NE(stuck.error().message().find(left), std::string::npos) << stuck.error().ToString();
    EXPECT_NE(stuck.error().hint().find("remove it yourself"), std::string::npos);
    auto later = OpenInput(folder / "new", {});
    EXPECT_TRUE(Pack(PosixFiles(), *later, folder / "set", options));
    EXPECT_FALSE(PosixFiles().Exists(left));
  }
}

TEST(OutputFolder, LeavesAloneWhatAnotherPackMadeOfItsFolder) {
  const TempFolder folder;
  Meddled files;
  std::unique_ptr<OutputFolder> other;
  files.after_making = [&](const std::string& path) {
    other = *OutputFolder::Begin(PosixFiles(), folder / "set", {});  // takes ours for a leftover
    WriteFile(path + "/theirs", "theirs");
  };
  const auto ours = OutputFolder::Begin(files, folder / "set", {});
  ASSERT_FALSE(ours);
  EXPECT_EQ(ours.error().code(), Code::kConflict);
  EXPECT_EQ(ReadFile(folder / ".set.muster-part/theirs"), "theirs");
  EXPECT_TRUE(other->Commit());
}

TEST(OutputFolder, KeepsItsHiddenNameUntilTheOldSetIsGone) {
  for (const bool durable : {true, false}) {
    const TempFolder folder;
    PackSample(folder, kOldRows);
    Meddled files;
    Code met = Code::kBug;
    files.after_exchange = [&] {
      const auto other = OutputFolder::Begin(PosixFiles(), folder / "set", {.replace = true});
      if (!other) met = other.error().code();
    };
    auto input = OpenInput(folder / "idx", {});
    ASSERT_TRUE(Pack(files, *input, folder / "set", {.replace = true, .durable = durable}));
    EXPECT_EQ(met, Code::kConflict) << durable;
    EXPECT_FALSE(PosixFiles().Exists(folder / ".set.muster-part"));
  }
}

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
