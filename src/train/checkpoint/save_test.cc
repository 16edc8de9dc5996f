// Saving and reading back: any number of ranks, every failing operation, damage, pruning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "base/durable.h"
#include "base/fault_files.h"
#include "train/checkpoint/digest.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/sample_test.h"

namespace muster::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::uint64_t> StepsIn(const std::string& folder) {
  std::vector<std::uint64_t> steps;
  const auto all = ListCheckpoints(PosixFiles(), folder);
  if (!all) return steps;
  for (const CheckpointInfo& info : *all) steps.push_back(info.step);
  return steps;
}

/// "" when the newest checkpoint of the folder is this sample's.
std::string NewestIs(const std::string& folder, const Sample& sample) {
  const auto latest = FindLatest(PosixFiles(), folder);
  if (!latest || !latest->has_value()) return "there is none";
  auto checkpoint = Checkpoint::Open(PosixFiles(), (*latest)->path);
  if (!checkpoint) return checkpoint.error().message();
  return sample.Compare(*checkpoint);
}

std::string DigestOf(const std::string& path, std::string_view scope = kAllGroups) {
  auto checkpoint = Checkpoint::Open(PosixFiles(), path);
  return checkpoint ? *Digest(*checkpoint, scope) : checkpoint.error().message();
}

TEST(Save, IsReadBackWhateverTheNumberOfRanks) {
  std::string digest;
  for (const std::uint32_t world : {1u, 2u, 3u, 4u, 8u}) {
    const TemporaryFolder folder;
    const Sample sample(5, world * 16);
    for (const auto& report : SaveTogether(sample, folder / "ckpt", 100, world)) {
      ASSERT_TRUE(report) << report.error().message();
      EXPECT_EQ(report->path, folder / "ckpt/step-000000000100");
      EXPECT_THAT(report->notes, IsEmpty());
    }
    EXPECT_EQ(NewestIs(folder / "ckpt", sample), "");
    EXPECT_EQ(*PosixFiles().ReadAll(folder / "ckpt/latest", 64_KiB), "step-000000000100\n");
    const std::string here = DigestOf(folder / "ckpt/step-000000000100");
    EXPECT_EQ(here.size(), 64u);
    if (digest.empty()) digest = here;
    EXPECT_EQ(here, digest) << world;
  }
}

TEST(Digest, TellsOtherValuesAndScopesApart) {
  const TemporaryFolder folder;
  SaveTogether(Sample(5, 16), folder / "a", 1, 2);
  SaveTogether(Sample(6, 16), folder / "b", 1, 2);
  const std::string a = DigestOf(folder / "a/step-000000000001");
  EXPECT_NE(a, DigestOf(folder / "b/step-000000000001"));
  EXPECT_NE(a, DigestOf(folder / "a/step-000000000001", kParamGroup));
}

TEST(Read, GivesAnyPartOfATensor) {
  const TemporaryFolder folder;
  const Sample sample(5, 16);
  SaveTogether(sample, folder.path(), 1, 3);
  auto checkpoint = Checkpoint::Open(PosixFiles(), folder / "step-000000000001");
  ASSERT_TRUE(checkpoint);
  for (std::uint64_t first = 0; first <= 3300; first += 157) {
    for (std::uint64_t n = 0; n + first <= 3300; n += 411) {
      std::vector<float> part(n);
      ASSERT_TRUE(checkpoint->Read("param", "block.0.weight", first,
                                   std::as_writable_bytes(std::span(part))));
      for (std::uint64_t i = 0; i < n; ++i)
        ASSERT_EQ(part[i], ValueAt(5, "param", "block.0.weight", first + i));
    }
  }
  std::vector<float> part(2);
  const auto bytes = std::as_writable_bytes(std::span(part));
  EXPECT_EQ(checkpoint->Read("param", "block.0.weight", 3299, bytes).error().code(),
            Code::kInvalid);
  EXPECT_EQ(checkpoint->Read("param", "nothing", 0, bytes).error().code(), Code::kNotFound);
  EXPECT_EQ(checkpoint->Read("momentum", "scale", 0, bytes).error().code(), Code::kNotFound);
}

/// One save whose n-th operation breaks: an error means that the old checkpoint is the newest,
/// success that the new one is; nothing in between is ever listed.
void BreakAt(const FaultPlan& plan, const Sample& old_state, const Sample& new_state) {
  const TemporaryFolder folder;
  SaveTogether(old_state, folder.path(), 1, 1);
  AloneAgreement alone;
  FaultFiles files(PosixFiles(), plan);
  const auto report = Save(files, alone, new_state.Request(folder.path(), 2, Rank(0), 1));
  if (report) {
    EXPECT_EQ(NewestIs(folder.path(), new_state), "");
    return;
  }
  EXPECT_THAT(report.error().message(), HasSubstr("save the checkpoint of step 2"));
  // Only a name that could be neither synced nor taken back may stay, and what it names is whole.
  if (report.error().message().find("may not survive a power cut") != std::string::npos) {
    EXPECT_EQ(NewestIs(folder.path(), new_state), "");
    EXPECT_TRUE(plan.lasting || plan.fault == Fault::kCrash);
    return;
  }
  EXPECT_EQ(NewestIs(folder.path(), old_state), "");
  // The next attempt of the same generation is not hindered by what was left.
  ASSERT_TRUE(Save(PosixFiles(), alone, new_state.Request(folder.path(), 2, Rank(0), 1)));
  EXPECT_EQ(NewestIs(folder.path(), new_state), "");
}

TEST(Save, LeavesThePreviousOneAtEveryFailure) {
  const Sample old_state(1, 16);
  const Sample new_state(2, 16);
  const TemporaryFolder folder;
  AloneAgreement alone;
  FaultFiles counting(PosixFiles(), {});
  ASSERT_TRUE(Save(counting, alone, new_state.Request(folder.path(), 2, Rank(0), 1)));
  ASSERT_GT(counting.operations(), 15u);
  for (std::uint64_t at = 0; at < counting.operations(); ++at) {
    SCOPED_TRACE("operation " + std::to_string(at));
    for (const Fault fault : {Fault::kNoSpace, Fault::kIoError, Fault::kCrash})
      BreakAt({.at = at, .fault = fault}, old_state, new_state);
    BreakAt({.at = at, .lasting = true}, old_state, new_state);
  }
}

TEST(Save, FailsOnEveryRankWhenOneRankFails) {
  for (const std::uint32_t bad : {0u, 1u, 2u}) {
    const TemporaryFolder folder;
    const Sample sample(1, 16);
    FaultFiles broken(PosixFiles(), {.at = bad == 0 ? 4u : 1u, .lasting = true});
    const auto reports = SaveTogether(
        sample, folder.path(), 1, 3, [](SaveRequest&) {},
        [&](std::uint32_t rank) -> FileSystem& {
          return rank == bad ? static_cast<FileSystem&>(broken) : PosixFiles();
        });
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      ASSERT_FALSE(reports[rank]);
      EXPECT_EQ(reports[rank].error().code(), rank == bad ? Code::kExhausted : Code::kCancelled);
    }
    EXPECT_THAT(StepsIn(folder.path()), IsEmpty());
  }
}

TEST(Save, IsRefusedToAStaleGeneration) {
  const TemporaryFolder folder;
  const Sample sample(1, 16);
  ASSERT_TRUE(WriteDurably(PosixFiles(), folder / "generation", AsBytes("4\n")));
  const auto change = [&](SaveRequest& request) {
    request.manifest.generation = Generation(3);
    request.generation_file = folder / "generation";
  };
  const auto reports = SaveTogether(sample, folder / "c", 1, 2, change);
  EXPECT_EQ(reports[0].error().code(), Code::kConflict);
  EXPECT_THAT(reports[0].error().message(), HasSubstr("generation 4 has taken over"));
  EXPECT_EQ(reports[1].error().code(), Code::kCancelled);
  EXPECT_THAT(*PosixFiles().List(folder / "c"), IsEmpty());

  ASSERT_TRUE(WriteDurably(PosixFiles(), folder / "generation", AsBytes("3\n")));
  EXPECT_TRUE(SaveTogether(sample, folder / "c", 1, 2, change)[0]);
  ASSERT_TRUE(WriteDurably(PosixFiles(), folder / "generation", AsBytes("3 or so")));
  EXPECT_EQ(SaveTogether(sample, folder / "c", 2, 2, change)[0].error().code(), Code::kDataLoss);
}

TEST(Save, BringsNoRunFolderBackThatWasMovedOrRemoved) {
  const TemporaryFolder folder;
  const Sample sample(1, 16);
  const auto change = [&](SaveRequest& request) {
    request.generation_file = folder / "run/generation";
  };
  const auto reports = SaveTogether(sample, folder / "run/checkpoints", 1, 2, change);
  EXPECT_EQ(reports[0].error().code(), Code::kNotFound);
  EXPECT_THAT(reports[0].error().message(), HasSubstr("was moved or removed"));
  EXPECT_FALSE(PosixFiles().Exists(folder / "run"));
}

TEST(Save, NeedsEveryTensorStoredOnce) {
  const TemporaryFolder folder;
  const Sample sample(1, 16);
  auto reports = SaveTogether(sample, folder.path(), 1, 2, [](SaveRequest& request) {
    if (request.rank == Rank(1)) request.slices.pop_back();
  });
  EXPECT_THAT(reports[0].error().message(), HasSubstr("of group 'exp_avg' is not stored"));
  reports = SaveTogether(sample, folder.path(), 1, 2, [&](SaveRequest& request) {
    if (request.rank == Rank(1)) request.slices[0] = sample.Request("", 1, Rank(0), 1).slices[0];
  });
  EXPECT_THAT(reports[0].error().message(), HasSubstr("stored twice"));
  EXPECT_THAT(StepsIn(folder.path()), IsEmpty());
}

TEST(Save, ReplacesOnlyWhenAsked) {
  const TemporaryFolder folder;
  const Sample first(1, 16);
  const Sample second(2, 16);
  ASSERT_TRUE(SaveTogether(first, folder.path(), 1, 2)[0]);
  EXPECT_EQ(SaveTogether(second, folder.path(), 1, 2)[0].error().code(), Code::kAlreadyExists);
  EXPECT_EQ(NewestIs(folder.path(), first), "");
  const auto reports = SaveTogether(second, folder.path(), 1, 2,
                                    [](SaveRequest& request) { request.replace_existing = true; });
  ASSERT_TRUE(reports[0]) << reports[0].error().message();
  EXPECT_EQ(NewestIs(folder.path(), second), "");
  EXPECT_THAT(*PosixFiles().List(folder.path()), ElementsAre("latest", "step-000000000001"));
}

TEST(Save, KeepsTheLastAndNeverRemovesTheNewest) {
  const TemporaryFolder folder;
  const Sample sample(1, 16);
  const auto keep_two = [](SaveRequest& request) { request.keep_last = 2; };
  for (const std::uint64_t step : {10u, 20u, 30u, 40u})
    SaveTogether(sample, folder.path(), step, 1, keep_two);
  EXPECT_THAT(StepsIn(folder.path()), ElementsAre(30, 40));
  // A continuation from further back writes below what is there: neither is lost.
  SaveTogether(sample, folder.path(), 25, 1, keep_two);
  EXPECT_THAT(StepsIn(folder.path()), ElementsAre(25, 30, 40));
  EXPECT_EQ(*PosixFiles().ReadAll(folder / "latest", 64_KiB), "step-000000000040\n");
}

TEST(Save, CountsNoDamagedCheckpointAmongThoseToKeep) {
  const TemporaryFolder folder;
  const Sample sample(1, 16);
  for (const std::uint64_t step : {10u, 20u, 30u}) SaveTogether(sample, folder.path(), step, 1);
  // 30 is damaged, the run went on from 20.
  const auto change = [](SaveRequest& request) {
    request.keep_last = 2;
    request.damaged = {30};
    request.replace_existing = true;
  };
  SaveTogether(sample, folder.path(), 25, 1, change);
  EXPECT_THAT(StepsIn(folder.path()), ElementsAre(20, 25, 30));
  EXPECT_EQ(*PosixFiles().ReadAll(folder / "latest", 64_KiB), "step-000000000025\n");
  // Written anew it counts again.
  SaveTogether(sample, folder.path(), 30, 1, change);
  EXPECT_THAT(StepsIn(folder.path()), ElementsAre(25, 30));
  EXPECT_EQ(*PosixFiles().ReadAll(folder / "latest", 64_KiB), "step-000000000030\n");
}

/// A peer that dies in the n-th agreement: an error for whoever is left.
class DyingPeer final : public Agreement {
 public:
  explicit DyingPeer(int at) : left_(at) {}
  Result<bool> AllOk(bool ok) override {
    if (left_-- > 0) return ok;
    return Error(Code::kCancelled, "rank 1 is gone");
  }

 private:
  int left_;
};

TEST(Save, StandsForTheRankThatCommittedItWhenAPeerDiesAfterwards) {
  const Sample sample(1, 16);
  for (const int at : {0, 1, 2}) {
    const TemporaryFolder folder;
    DyingPeer peer(at);
    const auto report = Save(PosixFiles(), peer, sample.Request(folder.path(), 1, Rank(0), 1));
    ASSERT_EQ(report.has_value(), at == 2) << at;
    EXPECT_EQ(StepsIn(folder.path()).size(), at == 2 ? 1u : 0u);
    if (report) {
      EXPECT_THAT(report->notes, ElementsAre(HasSubstr("rank 1 is gone")));
      continue;
    }
    // Says once what was being done.
    const std::string& message = report.error().message();
    EXPECT_EQ(message.find("save the checkpoint"), message.rfind("save the checkpoint"));
  }
}

TEST(Save, DoesNotClaimThatNothingWasCommittedWhenRankZeroDiesInTheLastAgreement) {
  const TemporaryFolder folder;
  const Sample sample(1, 16);
  ASSERT_TRUE(SaveTogether(sample, folder.path(), 1, 2)[0]);
  std::filesystem::create_directory(folder / TemporaryName(2, Generation(1)));
  DyingPeer peer(2);
  const auto report = Save(PosixFiles(), peer, sample.Request(folder.path(), 2, Rank(1), 2));
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message(), HasSubstr("could not be asked whether it was committed"));
}

TEST(MakeFolder, MakesTheFoldersAboveItToo) {
  const TemporaryFolder folder;
  ASSERT_TRUE(MakeFolder(PosixFiles(), folder / "a/b/c"));
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  EXPECT_TRUE(MakeFolder(PosixFiles(), folder / "a/b/c"));
  std::ofstream(folder / "file") << "x";
  EXPECT_FALSE(MakeFolder(PosixFiles(), folder / "file/inside"));
}

TEST(ProbeFolder, FindsAFolderThatTakesNothingAndLeavesNoTrace) {
  const TemporaryFolder folder;
  FaultFiles counting(PosixFiles(), {});
  ASSERT_TRUE(ProbeFolder(counting, folder.path()));
  EXPECT_THAT(*PosixFiles().List(folder.path()), IsEmpty());
  for (std::uint64_t at = 0; at < counting.operations(); ++at) {
    FaultFiles full(PosixFiles(), {.at = at});
    EXPECT_FALSE(ProbeFolder(full, folder.path())) << at;
  }
  std::ofstream(folder / "file") << "x";
  EXPECT_FALSE(ProbeFolder(PosixFiles(), folder / "file"));
}

TEST(Save, ReplacesTheHalfOfALatestThatAStopLeft) {
  const TemporaryFolder folder;
  const Sample sample(5, 16);
  ASSERT_TRUE(SaveTogether(sample, folder / "ckpt", 10, 1)[0]);
  std::ofstream(folder / "ckpt/latest.tmp") << "step-0000";
  EXPECT_THAT(StepsIn(folder / "ckpt"), ElementsAre(10u)) << "it misleads no reader";
  EXPECT_EQ(NewestIs(folder / "ckpt", sample), "");
  ASSERT_TRUE(SaveTogether(sample, folder / "ckpt", 20, 1)[0]);
  EXPECT_THAT(*PosixFiles().List(folder / "ckpt"),
              ElementsAre("latest", "step-000000000010", "step-000000000020"));
}

TEST(CleanLeftovers, RemovesWhatRunsAndGenerationsLeft) {
  const TemporaryFolder folder;
  for (const char* name :
       {"step-000000000001.g1.tmp", "step-000000000002.run-7.g2.tmp", "step-000000000003.g5.tmp",
        "mine.tmp", ".probe.tmp", "latest.tmp", "step-000000000009"})
    std::filesystem::create_directory(folder / name);
  ASSERT_TRUE(CleanLeftovers(PosixFiles(), folder.path()));
  EXPECT_THAT(*PosixFiles().List(folder.path()), ElementsAre("mine.tmp", "step-000000000009"));
  EXPECT_TRUE(CleanLeftovers(PosixFiles(), folder / "absent"));
}

TEST(RequireSameConfig, NamesTheKeyAndBothValues) {
  Manifest manifest{.config_json = R"({"heads": 4, "rate": 0.5, "deep": {"a": [1]}})"};
  EXPECT_TRUE(RequireSameConfig(manifest, R"({"deep":{"a":[1]},"rate":0.50,"heads":4})"));
  const auto error_of = [&](const char* own) {
    const Status same = RequireSameConfig(manifest, own);
    return same ? Error(Code::kBug, "same") : same.error();
  };
  const Error heads = error_of(R"({"heads": 8, "rate": 0.5, "deep": {"a": [1]}})");
  EXPECT_EQ(heads.code(), Code::kPrecondition);
  EXPECT_THAT(heads.message(), HasSubstr("'heads' is 4 in the checkpoint and 8 in this run"));
  EXPECT_THAT(error_of(R"({"heads": 4, "rate": 0.5, "deep": {"a": [2]}})").message(),
              HasSubstr(R"('deep' is {"a":[1]} in)"));
  EXPECT_THAT(error_of(R"({"heads": 4, "rate": 0.5})").message(), HasSubstr("absent in this run"));
  EXPECT_THAT(error_of(R"({"heads": 4, "rate": 0.5, "deep": {"a": [1]}, "new": 1})").message(),
              HasSubstr("'new' is absent in the checkpoint"));
  EXPECT_EQ(error_of("[]").code(), Code::kInvalid);
}

class Damage : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(SaveTogether(sample_, folder_.path(), 1, 2)[0]); }
  std::string Path(const std::string& name) const {
    return folder_ / ("step-000000000001/" + name);
  }
  void Flip(const std::string& name, std::uint64_t offset) const {
    std::fstream file(Path(name), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 4));
  }
  Error OpenError() const {
    const auto checkpoint = Checkpoint::Open(PosixFiles(), folder_ / "step-000000000001");
    return checkpoint ? Error(Code::kBug, "opened") : checkpoint.error();
  }

  TemporaryFolder folder_;
  Sample sample_{1, 16};
  const std::string second_ = "rank-00001-of-00002.safetensors";
};

TEST_F(Damage, OfOneBitNamesFileTensorAndRange) {
  const auto size = std::filesystem::file_size(Path(second_));
  Flip(second_, size - 1);
  auto checkpoint = Checkpoint::Open(PosixFiles(), folder_ / "step-000000000001");
  ASSERT_TRUE(checkpoint);
  std::vector<double> values(3300);
  const Status read = checkpoint->ReadTensor("exp_avg", "block.0.weight",
                                             std::as_writable_bytes(std::span(values)));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Code::kDataLoss);
  EXPECT_THAT(read.error().message(), HasSubstr("tensor 'block.0.weight' of group 'exp_avg'"));
  EXPECT_THAT(read.error().message(), HasSubstr(second_));
  EXPECT_THAT(read.error().message(), HasSubstr("to " + std::to_string(size - 1) + " are damaged"));
  // What does not lie in the damaged block is still readable.
  std::vector<float> embed(350);
  EXPECT_TRUE(
      checkpoint->ReadTensor("param", "embed.weight", std::as_writable_bytes(std::span(embed))));
  const auto report = checkpoint->Verify();
  ASSERT_TRUE(report);
  ASSERT_EQ(report->damage.size(), 1u);
  EXPECT_THAT(report->damage[0], HasSubstr("'block.0.weight' (exp_avg)"));
}

TEST_F(Damage, OfAHeaderIsFoundByEveryReader) {
  Flip(second_, 20);
  auto checkpoint = Checkpoint::Open(PosixFiles(), folder_ / "step-000000000001");
  ASSERT_TRUE(checkpoint);
  EXPECT_THAT(checkpoint->Verify()->damage, ElementsAre(HasSubstr("the header")));
  EXPECT_THAT(Digest(*checkpoint, kAllGroups).error().message(), HasSubstr("the header"));
}

TEST_F(Damage, OfTheManifestIsFoundAtOpen) {
  const auto size = std::filesystem::file_size(Path("manifest.json"));
  for (std::uint64_t at = 0; at < size; at += 37) {
    Flip("manifest.json", at);
    EXPECT_EQ(OpenError().code(), Code::kDataLoss) << at;
    Flip("manifest.json", at);
  }
  EXPECT_EQ(OpenError().message(), "opened");
}

TEST_F(Damage, OfMissingAndShortFilesIsFoundAtOpen) {
  std::filesystem::resize_file(Path(second_), 100);
  EXPECT_THAT(OpenError().message(), HasSubstr(second_ + " has 100 bytes instead of"));
  std::filesystem::remove(Path(second_));
  EXPECT_EQ(OpenError().code(), Code::kDataLoss);
  EXPECT_THAT(OpenError().message(), HasSubstr(second_));
  std::filesystem::remove(Path("manifest.json"));
  EXPECT_THAT(OpenError().message(), HasSubstr("has lost its manifest.json"));
}

TEST(Resolve, TakesAFolderOrACheckpoint) {
  const TemporaryFolder folder;
  const Sample sample(1, 16);
  SaveTogether(sample, folder / "c", 1, 1);
  SaveTogether(sample, folder / "c", 2, 1);
  EXPECT_EQ(*ResolveCheckpoint(PosixFiles(), folder / "c"), folder / "c/step-000000000002");
  EXPECT_EQ(*ResolveCheckpoint(PosixFiles(), folder / "c/step-000000000001"),
            folder / "c/step-000000000001");
  EXPECT_EQ(ResolveCheckpoint(PosixFiles(), folder.path()).error().code(), Code::kNotFound);
  EXPECT_EQ(ResolveCheckpoint(PosixFiles(), folder / "x").error().code(), Code::kNotFound);
}

/// Two checkpoints of the sample, with other elements of the flat "param" space in the second.
Result<Difference> DiffWith(const std::map<std::size_t, float>& elements) {
  const TemporaryFolder folder;
  const Sample sample(1, 16);
  SaveTogether(sample, folder / "a", 1, 1);
  std::vector<std::byte> changed;
  SaveTogether(sample, folder / "b", 1, 1, [&](SaveRequest& request) {
    changed.assign(request.slices[0].data.begin(), request.slices[0].data.end());
    for (const auto& [at, value] : elements) std::memcpy(changed.data() + at * 4, &value, 4);
    request.slices[0].data = changed;
  });
  auto a = Checkpoint::Open(PosixFiles(), folder / "a/step-000000000001");
  auto b = Checkpoint::Open(PosixFiles(), folder / "b/step-000000000001");
  return Diff(*a, *b, kParamGroup);
}

TEST(Diff, MeasuresInValuesAndInSteps) {
  auto value = static_cast<float>(ValueAt(1, "param", "embed.weight", 10));
  value = std::nextafter(std::nextafter(value, 1e30f), 1e30f);
  const auto difference = DiffWith({{10, value}});
  ASSERT_TRUE(difference);
  for (const TensorDifference& tensor : difference->tensors) {
    const bool touched = tensor.name == "embed.weight";
    EXPECT_EQ(tensor.unequal, touched ? 1u : 0u);
    EXPECT_EQ(tensor.max_ulp, touched ? 2u : 0u);
    EXPECT_EQ(tensor.max_abs > 0, touched);
    if (touched) {
      EXPECT_EQ(tensor.max_at, 10u);
    }
  }
  EXPECT_FALSE(difference->BitwiseEqual());
}

TEST(Diff, SaysWhatOnlyOneHolds) {
  const TemporaryFolder folder;
  SaveTogether(Sample(1, 16), folder / "a", 1, 1);
  SaveTogether(Sample(1, 16), folder / "b", 1, 1, [](SaveRequest& request) {
    for (IndexEntry& entry : request.manifest.index.entries) {
      if (entry.name == "embed.weight") entry.name = "embed.other";
    }
  });
  auto a = Checkpoint::Open(PosixFiles(), folder / "a/step-000000000001");
  auto b = Checkpoint::Open(PosixFiles(), folder / "b/step-000000000001");
  const auto difference = Diff(*a, *b, kParamGroup);
  ASSERT_TRUE(difference) << difference.error().message();
  ASSERT_EQ(difference->only_a.size(), 1u);
  EXPECT_EQ(difference->only_a[0].name, "embed.weight");
  ASSERT_EQ(difference->only_b.size(), 1u);
  EXPECT_EQ(difference->only_b[0].name, "embed.other");
  EXPECT_FALSE(difference->BitwiseEqual());
  EXPECT_EQ(Diff(*a, *b, "nosuch").error().code(), Code::kNotFound);
}

TEST(Diff, KeepsTheNaNOfATensorBehindWhichFiniteValuesDiffer) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t at : {5u, 10u, 20u}) {  // before, between and behind finite differences
    const auto difference = DiffWith({{7, 0.25f}, {15, 0.5f}, {at, nan}});
    ASSERT_TRUE(difference);
    for (const TensorDifference& tensor : difference->tensors) {
      if (tensor.name != "embed.weight") continue;
      EXPECT_EQ(tensor.unequal, 3u);
      EXPECT_TRUE(std::isnan(tensor.max_abs)) << tensor.max_abs << ", NaN at " << at;
    }
  }
}

}  // namespace
}  // namespace muster::checkpoint
