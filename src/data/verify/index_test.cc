// Where a shard and its row index disagree, the one that is wrong is named and the other is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/crc32c.h"
#include "data/dataset.h"
#include "data/layout/manifest.h"
#include "data/testing/sample_data.h"
#include "data/verify/verify.h"

namespace muster::data {
namespace {

class DamagedIndex : public testing::Test {
 protected:
  DamagedIndex() : set_(PackSample(folder_, 250, 1'000'000)) {}

  VerifyReport Verify() { return VerifySplit(FindSplits(set_, OnDamage::kKeep)->front()); }
  /// What a reader says of the first row that it refuses.
  std::string Refusal() {
    const auto dataset = Dataset::Open(set_);
    if (!dataset) return dataset.error().message();
    for (std::uint64_t row = 0; row < (*dataset)->rows(); ++row) {
      const auto read = (*dataset)->Read(row);
      if (!read) return read.error().message();
    }
    return {};
  }
  std::size_t PlaceOfImage(std::uint64_t row) {
    const std::string image(AsText((*Dataset::Open(set_))->Read(row)->image));
    return ReadFile(shard_).find(image);
  }
  /// With checksums that hold again.
  void SwapEntries(std::size_t row) {
    std::string entries = ReadFile(index_);
    const auto at = entries.begin() + static_cast<std::ptrdiff_t>(32 + 12 * row);
    std::swap_ranges(at, at + 12, at + 12);
    WriteFile(index_, entries);
    const std::string path = set_ + "/_muster/manifest";
    Manifest manifest = *DecodeManifest(AsBytes(ReadFile(path)));
    BatchEntry& batch = manifest.shards[0].batches[0];
    batch.index_crc = Crc32c(AsBytes(entries).subspan(32, 12 * batch.frame.rows));
    WriteFile(path, AsText(EncodeManifest(manifest)));
  }

  const std::string name_ = "data-00000-of-00001.arrow";
  const std::string index_name_ = "train/_muster/" + name_ + ".idx";
  TempFolder folder_;
  const std::string set_;
  const std::string shard_ = set_ + "/" + name_;
  const std::string index_ = set_ + "/_muster/" + name_ + ".idx";
};

TEST_F(DamagedIndex, NoFlippedBitOfTheIndexEscapesAndNoneIsCalledTheShards) {
  const std::size_t size = ReadFile(index_).size();
  for (std::size_t at = 0; at < size; at += at < 40 ? 1 : 97) {
    FlipBit(index_, at);
    const VerifyReport report = Verify();
    FlipBit(index_, at);
    if (at >= 8 && at < 12) continue;  // a later version is not damage
    ASSERT_EQ(report.damages, 1u) << "bit at byte " << at;
    EXPECT_EQ(report.first[0].file, index_name_) << report.first[0].ToString();
    EXPECT_EQ(report.first[0].batch, at < 32 ? -1 : static_cast<std::int64_t>((at - 32) / 1200));
  }
  EXPECT_EQ(Verify().damages, 0u);
}

TEST_F(DamagedIndex, AReaderNamesTheIndexAndNotTheShard) {
  FlipBit(index_, 32 + 12 * 103);
  EXPECT_EQ(Refusal().find(index_name_ + ", batch 1: its part of the row index is damaged"), 0u)
      << Refusal();
  FlipBit(index_, 32 + 12 * 103);
  FlipBit(index_, 0);
  EXPECT_EQ(Refusal(), index_name_ + ": not a row index");
}

TEST_F(DamagedIndex, AnIndexThatPointsElsewhereIsNamedWhereTheShardIsWhole) {
  SwapEntries(7);
  const VerifyReport report = Verify();
  ASSERT_EQ(report.damages, 2u);
  EXPECT_EQ(report.first[0].ToString(),
            index_name_ + ", batch 0, row 7: the row index points somewhere else");
  EXPECT_EQ(report.first[1].row, 8);
  EXPECT_EQ(Refusal(), "train/" + name_ + ", batch 0, row 7: the row index " + index_name_ +
                           " points somewhere else");
}

TEST_F(DamagedIndex, OffsetsThatAreDamagedInTheShardAreNotTheIndexs) {
  const Manifest manifest = *DecodeManifest(AsBytes(ReadFile(set_ + "/_muster/manifest")));
  const auto body = manifest.shards[0].batches[1].frame.body_offset();
  FlipBit(shard_, body + 4 * 20);  // the first buffer holds where each image begins
  const VerifyReport report = Verify();
  ASSERT_GT(report.damages, 1u);
  for (const Damage& damage : report.first) {
    EXPECT_EQ(damage.file, "train/" + name_) << damage.ToString();
    EXPECT_EQ(damage.batch, 1) << damage.ToString();
  }
}

TEST_F(DamagedIndex, AnImageThatFailsItsChecksumIsTheShards) {
  FlipBit(shard_, PlaceOfImage(142) + 40);
  const VerifyReport report = Verify();
  ASSERT_EQ(report.damages, 1u);
  EXPECT_EQ(report.first[0].ToString(),
            "train/" + name_ + ", batch 1, row 42: the image fails its CRC32C");
}

TEST_F(DamagedIndex, BesideADamagedIndexADamagedImageIsStillFound) {
  FlipBit(shard_, PlaceOfImage(142) + 45);  // a pixel, not a name in the file
  FlipBit(index_, 32 + 12 * 103);
  const VerifyReport report = Verify();
  ASSERT_EQ(report.damages, 2u);
  EXPECT_EQ(report.first[0].file, index_name_);
  EXPECT_EQ(report.first[0].batch, 1);
  EXPECT_EQ(report.first[1].file, "train/" + name_);
  EXPECT_NE(report.first[1].what.find("fail their CRC32C"), std::string::npos);
}

}  // namespace
}  // namespace muster::data
