#include "data/verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/absent.h"
#include "base/crc32c.h"
#include "data/arrow/encode.h"
#include "data/dataset.h"
#include "data/layout/hf_json.h"
#include "data/layout/manifest.h"
#include "data/testing/sample_data.h"

namespace muster::data {
namespace {

VerifyReport VerifyAt(const std::string& set) {
  return VerifySplit(FindSplits(set, OnDamage::kKeep)->front());
}

class Damaged : public testing::Test {
 protected:
  Damaged() { Pack(60'000); }
  void Pack(std::int64_t shard_bytes) {
    set_ = PackSample(folder_, 450, shard_bytes);
    shards_.clear();
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

TEST_F(Damaged, EveryDamagedShardIsToldInOneGoInOrderForAnyNumberOfThreads) {
  Pack(15'000);
  ASSERT_GT(shards_.size(), 3u);
  const auto image_of_the_last_row = [&] {
    const auto dataset = *Dataset::Open(set_);
    return std::string(AsText(dataset->Read(dataset->rows() - 1)->image));
  }();
  FlipBit(shards_.back(), ReadFile(shards_.back()).find(image_of_the_last_row) + 40);
  const std::string first = ReadFile(shards_[0]);
  WriteFile(shards_[0], first.substr(0, first.size() - 8));
  std::filesystem::remove(shards_[1]);
  for (const unsigned threads : {1u, 2u, 5u}) {
    std::uint64_t done = 0;
    std::uint64_t all = 0;
    const auto reports =
        VerifySplits(*FindSplits(set_), {.threads = threads, .on_progress = [&](auto d, auto a) {
                                           done = d;
                                           all = a;
                                         }});
    ASSERT_TRUE(reports);
    const VerifyReport& report = reports->front();
    EXPECT_TRUE(report.opened);
    EXPECT_EQ(report.shards, shards_.size());
    EXPECT_EQ(report.recorded.rows, 450u);
    EXPECT_EQ(report.recorded.batches, 5u);
    EXPECT_LT(report.rows, 450u);
    ASSERT_EQ(report.damages, 3u) << report.first[0].ToString();
    EXPECT_EQ(report.first[0].ToString(), report.first[0].what) << "which names the file";
    EXPECT_NE(report.first[0].what.find("the manifest says"), std::string::npos);
    EXPECT_NE(report.first[1].what.find(" is gone"), std::string::npos);
    EXPECT_NE(report.first[2].what.find("CRC32C"), std::string::npos);
    EXPECT_EQ(done, all);
  }
}

TEST_F(Damaged, WithoutAManifestTheOtherShardsAreLookedAtToo) {
  Pack(15'000);
  std::filesystem::remove_all(set_ + "/_muster");
  WriteFile(shards_[0], "junk");
  WriteFile(shards_[2], ReadFile(shards_[2]).substr(0, 5000));
  const VerifyReport report = VerifyAt(set_);
  EXPECT_TRUE(report.opened);
  EXPECT_EQ(report.shards, shards_.size());
  EXPECT_EQ(report.damages, 2u);
  EXPECT_GT(report.rows, 0u);
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
    EXPECT_TRUE(report.opened);
    EXPECT_EQ(report.shards, shards_.size());
  }
}

TEST_F(Damaged, ADamagedIndexIsFoundByBothReaders) {
  const std::string index =
      set_ + "/_muster/" + std::filesystem::path(shards_[0]).filename().string() + ".idx";
  FlipBit(index, 32 + 12 * 3 + 9);
  EXPECT_GT(VerifyAt(set_).damages, 0u);
  EXPECT_NE((*Dataset::Open(set_))->Read(0).error().message().find("row index"), std::string::npos);
}

TEST_F(Damaged, AnIndexThatPointsElsewhereIsFoundThoughEveryChecksumHolds) {
  const std::string name = std::filesystem::path(shards_[0]).filename().string();
  const std::string index = set_ + "/_muster/" + name + ".idx";
  const std::string path = set_ + "/_muster/manifest";
  std::string entries = ReadFile(index);
  std::swap_ranges(entries.begin() + 32, entries.begin() + 44, entries.begin() + 44);  // rows 0, 1
  WriteFile(index, entries);
  Manifest manifest = *DecodeManifest(AsBytes(ReadFile(path)));
  BatchEntry& batch = manifest.shards[0].batches[0];
  batch.index_crc = Crc32c(AsBytes(entries).subspan(32, 12 * batch.frame.rows));
  WriteFile(path, AsText(EncodeManifest(manifest)));
  const VerifyReport report = VerifyAt(set_);
  ASSERT_EQ(report.damages, 2u);
  EXPECT_EQ(report.first[1].row, 1);
  EXPECT_EQ(report.first[1].what, "the row index points somewhere else");
  const auto row = (*Dataset::Open(set_))->Read(0);
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().code(), Code::kDataLoss);
}

TEST_F(Damaged, BytesBehindTheEndOfAShardAreFoundWithoutAManifest) {
  std::filesystem::remove_all(set_ + "/_muster");
  WriteFile(shards_[1], ReadFile(shards_[1]) + std::string(8, '\0'));
  const VerifyReport report = VerifyAt(set_);
  ASSERT_EQ(report.damages, 1u);
  EXPECT_NE(report.first[0].what.find("8 bytes behind the end-of-stream mark"), std::string::npos);
}

TEST_F(Damaged, ALabelColumnThatIsGoneOrHoldsNoNumbersIsDamage) {
  std::filesystem::remove_all(set_ + "/_muster");
  const std::string label = R"("label":{)";
  for (const auto& [name, what] : {std::pair{"sauce", "there is no label column 'sauce'"},
                                   {"image", "the label column 'image' holds no whole numbers"}}) {
    Pack(60'000);
    std::filesystem::remove_all(set_ + "/_muster");
    for (const std::string& shard : shards_) {
      std::string content = ReadFile(shard);
      const std::string image = R"("image":{)";
      content.replace(content.find(image) + 1, 5, "other");
      content.replace(content.find(label) + 1, 5, name);
      WriteFile(shard, content);
    }
    const VerifyReport report = VerifyAt(set_);
    EXPECT_TRUE(std::ranges::any_of(report.first, [&](const Damage& d) { return d.what == what; }))
        << (report.first.empty() ? "no damage" : report.first[0].ToString());
  }
}

TEST_F(Damaged, AFolderOfOursWithoutItsManifestIsNoSetWithoutChecksums) {
  std::filesystem::remove(set_ + "/_muster/manifest");
  const auto opened = Dataset::Open(set_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kDataLoss);
  EXPECT_NE(opened.error().message().find("_muster has no manifest"), std::string::npos);
  EXPECT_EQ(VerifyAt(set_).damages, 1u);
}

TEST_F(Damaged, BehindADamagedManifestTheShardsAreCountedAndTheirStructureChecked) {
  FlipBit(set_ + "/_muster/manifest", 200);
  VerifyReport report = VerifyAt(set_);
  ASSERT_EQ(report.damages, 1u);
  EXPECT_NE(report.first[0].what.find("the manifest is damaged"), std::string::npos);
  EXPECT_TRUE(report.opened);
  EXPECT_TRUE(report.lost_checksums);
  EXPECT_FALSE(report.has_checksums);
  EXPECT_EQ(report.shards, shards_.size());
  EXPECT_EQ(report.rows, 450u);
  const std::string content = ReadFile(shards_[1]);
  WriteFile(shards_[1], content.substr(0, content.size() - 100));
  report = VerifyAt(set_);
  ASSERT_EQ(report.damages, 2u);
  EXPECT_NE(report.first[1].what.find("does not fit"), std::string::npos) << report.first[1].what;
  EXPECT_EQ(report.shards, shards_.size());
}

TEST_F(Damaged, WhereStateJsonIsDamagedTheManifestSaysWhichShardsThereAre) {
  const std::string state = set_ + "/state.json";
  const std::string good = ReadFile(state);
  const std::string name = std::filesystem::path(shards_[0]).filename().string();
  for (const std::string& bad :
       {std::string("junk"), std::string("{}"), StateJson({}, "f", "train"),
        StateJson({name}, "f", "train"), StateJson({"../" + name}, "f", "train")}) {
    WriteFile(state, bad);
    EXPECT_EQ(Dataset::Open(set_).error().code(), Code::kDataLoss) << bad;
    const VerifyReport report = VerifyAt(set_);
    EXPECT_EQ(report.damages, 1u) << bad;
    EXPECT_EQ(report.rows, 450u) << bad;
    EXPECT_TRUE(report.has_checksums) << bad;
  }
  std::filesystem::remove(state);
  EXPECT_EQ(VerifyAt(set_).rows, 450u);
  std::filesystem::create_directory(state);
  EXPECT_EQ(Dataset::Open(set_).error().code(), Code::kDataLoss);
  EXPECT_EQ(VerifyAt(set_).damages, 1u);
}

TEST_F(Damaged, OtherNamesInStateJsonAreADamageAndNoShardIsMissed) {
  std::string state = ReadFile(set_ + "/state.json");
  state.replace(state.find("data-00000"), 10, "data-00009");
  WriteFile(set_ + "/state.json", state);
  EXPECT_NE(Dataset::Open(set_).error().message().find("shard 0 is data-00000-of"),
            std::string::npos);
  const VerifyReport report = VerifyAt(set_);
  EXPECT_EQ(report.damages, 1u);
  EXPECT_EQ(report.rows, 450u);
}

TEST_F(Damaged, EveryShardIsNamedWhenNoneIsWhole) {
  for (const std::string& shard : shards_) FlipBit(shard, 0);
  const VerifyReport report = VerifyAt(set_);
  EXPECT_TRUE(report.opened);
  EXPECT_EQ(report.shards, shards_.size());
  ASSERT_EQ(report.damages, shards_.size());
  EXPECT_EQ(report.first[0].file, "train/" + std::filesystem::path(shards_[0]).filename().string());
  EXPECT_EQ(Dataset::Open(set_).error().code(), Code::kDataLoss);
}

TEST_F(Damaged, AShardInWhosePlaceAFolderStandsIsDamage) {
  std::filesystem::remove(shards_[1]);
  std::filesystem::create_directory(shards_[1]);
  EXPECT_EQ(VerifyAt(set_).damages, 1u);
  std::filesystem::remove_all(set_ + "/_muster");
  const VerifyReport report = VerifyAt(set_);
  EXPECT_EQ(report.damages, 1u);
  EXPECT_EQ(Dataset::Open(set_).error().code(), Code::kDataLoss);
}

TEST_F(Damaged, ALaterManifestIsNotDamage) {
  const std::string manifest = set_ + "/_muster/manifest";
  std::string content = ReadFile(manifest);
  content[8] = 2;
  WriteFile(manifest, content);
  const VerifyReport flipped = VerifyAt(set_);
  EXPECT_EQ(flipped.damages, 1u) << "the checksum is that of version 1";
  EXPECT_TRUE(flipped.unread.empty());
  std::memset(content.data() + 52, 0, 4);
  const std::uint32_t crc = Crc32c(AsBytes(content));
  std::memcpy(content.data() + 52, &crc, sizeof crc);
  WriteFile(manifest, content);
  const VerifyReport report = VerifyAt(set_);
  EXPECT_EQ(report.damages, 0u);
  ASSERT_EQ(report.unread.size(), 1u);
  EXPECT_EQ(report.unread[0].code(), Code::kPrecondition);
  EXPECT_NE(report.unread[0].hint().find("a later one"), std::string::npos);
}

TEST_F(Damaged, TheManifestOfAnotherSetIsTheOneThatIsWrong) {
  for (const std::uint32_t rows : {60u, 450u}) {
    const TempFolder elsewhere;
    const std::string other = PackSample(elsewhere, rows, 60'000);
    if (rows == 450) {  // shards of the same names and sizes
      const TempFolder third;
      WriteFile(third / "idx/train-images-idx3-ubyte", IdxImages(rows));
      std::string labels = IdxLabels(rows);
      std::ranges::reverse(labels.begin() + 8, labels.end());
      WriteFile(third / "idx/train-labels-idx1-ubyte", labels);
      auto input = OpenInput(third / "idx", {});
      ASSERT_TRUE(data::Pack(PosixFiles(), *input, other,
                             {.shard_size = {60'000}, .replace = true, .durable = false}));
    }
    const std::string mine = set_ + "/_muster/manifest";
    const std::string good = ReadFile(mine);
    ASSERT_NE(ReadFile(other + "/_muster/manifest"), good);
    WriteFile(mine, ReadFile(other + "/_muster/manifest"));
    const VerifyReport report = VerifyAt(set_);
    ASSERT_EQ(report.damages, 1u) << report.first[1].ToString();
    EXPECT_EQ(report.first[0].file, mine);
    EXPECT_NE(report.first[0].what.find("is of another set"), std::string::npos);
    EXPECT_EQ(report.rows, 450u);
    EXPECT_NE(Dataset::Open(set_).error().message().find(mine), std::string::npos);
    WriteFile(mine, good);
  }
  EXPECT_EQ(VerifyAt(set_).damages, 0u);
}

TEST_F(Damaged, AShardThatIsGoneIsDamageToEveryReader) {
  for (const bool manifest : {true, false}) {
    if (!manifest) std::filesystem::remove_all(set_ + "/_muster");
    std::filesystem::remove(shards_[1]);
    const auto opened = Dataset::Open(set_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), Code::kDataLoss) << opened.error().ToString();
    EXPECT_NE(opened.error().message().find(shards_[1]), std::string::npos);
    EXPECT_EQ(VerifyAt(set_).damages, 1u);
  }
}

TEST_F(Damaged, DatasetInfoIsHeldAgainstTheShards) {
  const std::string info = set_ + "/dataset_info.json";
  const std::string good = ReadFile(info);
  std::string renamed = good;
  renamed.replace(renamed.find("\"9\""), 3, "\"x\"");
  for (const std::string& bad : {std::string(), std::string("junk"), std::string("{}"), renamed}) {
    WriteFile(info, bad);
    const auto opened = Dataset::Open(set_);
    ASSERT_FALSE(opened) << bad;
    EXPECT_EQ(opened.error().code(), Code::kDataLoss);
    const VerifyReport report = VerifyAt(set_);
    ASSERT_EQ(report.damages, 1u) << bad;
    EXPECT_EQ(report.first[0].file, info);
    EXPECT_EQ(report.rows, 450u);
  }
  std::filesystem::remove(info);
  EXPECT_FALSE(Dataset::Open(set_));
  EXPECT_EQ(VerifyAt(set_).damages, 1u);
}

TEST_F(Damaged, NoFileAndNoSplitIsListedTwice) {
  std::filesystem::remove_all(set_ + "/_muster");
  const std::string name = std::filesystem::path(shards_[0]).filename().string();
  WriteFile(set_ + "/state.json", StateJson({name, name}, "f", "train"));
  const auto opened = Dataset::Open(set_);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find("'" + name + "' twice"), std::string::npos);
  EXPECT_FALSE(FindSplits(set_));
  const auto splits = ParseDatasetDict(R"({"splits":["train","test","train"]})");
  ASSERT_FALSE(splits);
  EXPECT_NE(splits.error().message().find("'train' twice"), std::string::npos);
}

TEST_F(Damaged, ALabelThatTheSetsOwnClassesDoNotReachIsNamed) {
  // The same length, so that the schema message keeps its shape: ten classes become one.
  std::filesystem::remove_all(set_ + "/_muster");
  const std::string ten = R"(["0","1","2","3","4","5","6","7","8","9"])";
  const std::string one = R"(["0"])" + std::string(ten.size() - 5, ' ');
  for (const std::string& shard : shards_) {
    std::string content = ReadFile(shard);
    content.replace(content.find(ten), ten.size(), one);
    WriteFile(shard, content);
  }
  WriteFile(set_ + "/dataset_info.json", DatasetInfoJson({"0"}));
  const VerifyReport report = VerifyAt(set_);
  EXPECT_EQ(report.damages, 405u);
  EXPECT_EQ(report.first[0].row, 1);
  EXPECT_EQ(report.first[0].what, "the label is 1, the set names the classes 0 to 0");
}

TEST_F(Damaged, WhoNamesAFolderAboveOrNoSetAtAllIsToldWhatIsThere) {
  const Error above = FindSplits(folder_.path()).error();
  EXPECT_EQ(above.code(), Code::kNotFound);
  EXPECT_EQ(above.hint(), "did you mean " + set_ + "?");
  const Error images = FindSplits(folder_ / "idx").error();
  EXPECT_EQ(images.hint(),
            "if it holds images, pack them: muster data pack " + (folder_ / "idx") + " OUT");
  const Error file = FindSplits(shards_[0]).error();
  EXPECT_EQ(file.code(), Code::kNotFound);
  EXPECT_NE(file.message().find("is a file; a dataset is a folder"), std::string::npos);
  const Error deep = FindSplits(folder_ / "a/b/c").error();
  const std::string there = AbsolutePath(folder_.path());
  EXPECT_EQ(deep.message(),
            "there is no dataset at " + there + "/a/b/c, of that only " + there + " exists");
}

/// Two sets of one shard each, put together by hand as one without checksums.
std::string Joined(const TempFolder& folder, const std::string& other_shard) {
  const std::string set = PackSample(folder, 20, 1'000'000);
  std::filesystem::remove_all(set + "/_muster");
  const std::string first = "data-00000-of-00001.arrow";
  WriteFile(set + "/other.arrow", other_shard);
  WriteFile(set + "/state.json", StateJson({first, "other.arrow"}, "f", "train"));
  return set;
}

TEST(Joined, ShardsThatNameOtherClassesAreNoSet) {
  const TempFolder folder;
  const TempFolder elsewhere;
  WriteFile(elsewhere / "in/ant/1.png", GreyPng(1));
  WriteFile(elsewhere / "in/bee/1.png", GreyPng(1));
  auto input = OpenInput(elsewhere / "in", {});
  ASSERT_TRUE(input);
  ASSERT_TRUE(Pack(PosixFiles(), *input, elsewhere / "set", {.durable = false}));
  const std::string shard = ReadFile(elsewhere / "set/data-00000-of-00001.arrow");
  const std::string set = Joined(folder, shard);
  const auto opened = Dataset::Open(set);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kDataLoss);
  EXPECT_EQ(opened.error().message(),
            "train/other.arrow names other classes than data-00000-of-00001.arrow");
  const VerifyReport report = VerifyAt(set);
  EXPECT_EQ(report.damages, 1u);
  EXPECT_EQ(report.rows, 20u);
  EXPECT_EQ(report.shards, 2u);
}

TEST(Joined, ShardsOfOtherColumnsAreNoSet) {
  const TempFolder folder;
  const arrow::Schema other{.fields = {arrow::Int64Field("label")}};
  std::string shard(AsText(arrow::EncodeSchema(other)));
  shard += AsText(ByteSpan(arrow::kEndOfStream));
  const std::string set = Joined(folder, shard);
  const auto opened = Dataset::Open(set);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kDataLoss);
  EXPECT_EQ(opened.error().message(),
            "train/other.arrow has other columns than data-00000-of-00001.arrow");
  EXPECT_EQ(VerifyAt(set).damages, 1u);
}

TEST(Joined, ASetWithoutImagesIsNoneToTrainOn) {
  const TempFolder folder;
  const arrow::Schema other{.fields = {arrow::Int64Field("label")}};
  WriteFile(folder / "set/x.arrow", std::string(AsText(arrow::EncodeSchema(other))) +
                                        std::string(AsText(ByteSpan(arrow::kEndOfStream))));
  WriteFile(folder / "set/state.json", StateJson({"x.arrow"}, "f", "train"));
  WriteFile(folder / "set/dataset_info.json", "{}");
  const auto opened = Dataset::Open(folder / "set");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kPrecondition);
  EXPECT_NE(opened.error().message().find("no column of encoded images"), std::string::npos);
}

TEST_F(Damaged, AnUnfinishedSetSaysSo) {
  std::filesystem::remove(set_ + "/state.json");
  const auto opened = Dataset::Open(set_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kPrecondition);
  EXPECT_EQ(Dataset::Open(folder_ / "nowhere").error().code(), Code::kNotFound);
  EXPECT_EQ(Dataset::Open(folder_ / "idx").error().code(), Code::kNotFound);
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
