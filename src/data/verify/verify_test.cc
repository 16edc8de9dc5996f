#include "data/verify/verify.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/dataset.h"
#include "data/testing/sample_data.h"

namespace muster::data {
namespace {

VerifyReport VerifyAt(const std::string& set) { return VerifySplit(FindSplits(set)->front()); }

class Damaged : public testing::Test {
 protected:
  Damaged() : set_(PackSample(folder_, 450, 60'000)) {
    const auto dataset = *Dataset::Open(set_);
    for (const ShardInfo& shard : dataset->shards()) shards_.push_back(set_ + "/" + shard.name);
  }
  TempFolder folder_;
  std::string set_;
  std::vector<std::string> shards_;
};

TEST_F(Damaged, AWholeSetHasNoDamage) {
  const VerifyReport report = VerifyAt(set_);
  EXPECT_EQ(report.damages, 0u) << report.first[0].ToString();
  EXPECT_EQ(report.rows, 450u);
  EXPECT_EQ(report.shards, shards_.size());
  EXPECT_GT(shards_.size(), 1u);
}

TEST_F(Damaged, NoFlippedBitEscapes) {
  const std::string content = ReadFile(shards_[1]);
  for (std::size_t at = 0; at < content.size(); at += 487) {
    FlipBit(shards_[1], at);
    ASSERT_GT(VerifyAt(set_).damages, 0u) << "bit at byte " << at;
    FlipBit(shards_[1], at);
  }
  EXPECT_EQ(VerifyAt(set_).damages, 0u);
}

TEST_F(Damaged, ReadingFindsEveryFlippedBitThatARowDependsOn) {
  const auto whole = *Dataset::Open(set_);
  const std::string content = ReadFile(shards_[0]);
  for (std::size_t at = 4096; at + 8 < content.size(); at += 1013) {
    FlipBit(shards_[0], at);
    const auto dataset = Dataset::Open(set_);
    bool found = !dataset;
    for (std::uint64_t row = 0; !found && row < whole->shards()[0].rows; ++row) {
      found = !(*dataset)->Read(row);
    }
    ASSERT_TRUE(found) << "bit at byte " << at;
    FlipBit(shards_[0], at);
  }
}

TEST_F(Damaged, NamesFileBatchAndRowOfAFlippedImageBit) {
  const auto dataset = *Dataset::Open(set_);
  const std::string image(AsText(dataset->Read(142)->image));
  FlipBit(shards_[0], ReadFile(shards_[0]).find(image) + 40);
  const VerifyReport report = VerifyAt(set_);
  ASSERT_EQ(report.damages, 1u);
  EXPECT_EQ(report.first[0].ToString().find("train/data-00000-of-"), 0u)
      << report.first[0].ToString();
  EXPECT_TRUE(report.opened);
  EXPECT_EQ(report.first[0].batch, 1);
  EXPECT_EQ(report.first[0].row, 42);
}

TEST_F(Damaged, ACutOrGrownShardIsRefusedByName) {
  const std::string content = ReadFile(shards_[0]);
  for (const std::string& other : {content.substr(0, content.size() - 8), content + "x"}) {
    WriteFile(shards_[0], other);
    const auto opened = Dataset::Open(set_);
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message().find("the manifest says"), std::string::npos);
    const VerifyReport report = VerifyAt(set_);
    EXPECT_EQ(report.damages, 1u);
    EXPECT_FALSE(report.opened);
  }
}

TEST_F(Damaged, ADamagedIndexIsFoundByBothReaders) {
  const std::string index =
      set_ + "/_muster/" + std::filesystem::path(shards_[0]).filename().string() + ".idx";
  FlipBit(index, 32 + 12 * 3 + 9);
  EXPECT_GT(VerifyAt(set_).damages, 0u);
  EXPECT_NE((*Dataset::Open(set_))->Read(0).error().message().find("row index"), std::string::npos);
}

TEST_F(Damaged, AnUnfinishedSetSaysSo) {
  std::filesystem::remove(set_ + "/state.json");
  const auto opened = Dataset::Open(set_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kPrecondition);
  EXPECT_EQ(Dataset::Open(folder_ / "nowhere").error().code(), Code::kNotFound);
  EXPECT_EQ(Dataset::Open(folder_ / "idx").error().code(), Code::kInvalid);
}

TEST_F(Damaged, WithoutAManifestTheBatchesAreWalked) {
  const auto with = *Dataset::Open(set_);
  std::vector<std::string> images;
  for (std::uint64_t row = 0; row < with->rows(); ++row) {
    images.emplace_back(AsText(with->Read(row)->image));
  }
  std::filesystem::remove_all(set_ + "/_muster");
  const auto without = Dataset::Open(set_);
  ASSERT_TRUE(without) << without.error().ToString();
  EXPECT_FALSE((*without)->has_checksums());
  EXPECT_NE((*without)->id(), with->id());
  for (const std::uint64_t row : {0u, 99u, 100u, 449u}) {
    EXPECT_EQ(AsText((*without)->Read(row)->image), images[row]);
  }
  EXPECT_EQ(VerifyAt(set_).damages, 0u);
}

}  // namespace
}  // namespace muster::data
