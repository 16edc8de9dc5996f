// Files that become shorter while they are mapped: the process goes on, the error names the file,
// and nothing that was not in it is ever taken for a row.
#include "data/layout/mapped_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "data/dataset.h"
#include "data/loader.h"
#include "data/testing/sample_data.h"
#include "data/verify/verify.h"

namespace muster::data {
namespace {

void Cut(const std::string& path, std::size_t bytes) {
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(bytes)), 0);
}

std::string Shorter(const std::string& path, std::size_t was, std::size_t is) {
  return path + " became shorter while it was read: was " + std::to_string(was) + " bytes, is " +
         std::to_string(is);
}

std::size_t Sum(ByteSpan bytes) {
  std::size_t sum = 0;
  for (const std::byte byte : bytes) sum += std::to_integer<std::size_t>(byte);
  return sum;
}

TEST(MappedFile, ACutIsToldWhereverItIs) {
  const TempFolder folder;
  const std::string path = folder / "file";
  for (const std::size_t left : {0u, 1u, 4096u, 5000u, 12'000u, 12'287u, 12'289u, 12'999u}) {
    WriteFile(path, std::string(13'000, 'x'));
    const auto file = MappedFile::Open(path);
    ASSERT_TRUE(file && file->Whole());
    Cut(path, left);
    EXPECT_EQ(Sum(file->bytes()), left * 'x');
    const Status whole = file->Whole();
    ASSERT_FALSE(whole) << left;
    EXPECT_EQ(whole.error().code(), Code::kDataLoss);
    EXPECT_EQ(whole.error().message(), Shorter(path, 13'000, left));
    EXPECT_FALSE(file->Whole()) << "once and for ever";
  }
}

TEST(MappedFile, ZerosAtTheEndThatAreCutAreReadAsTheyWere) {
  const TempFolder folder;
  const std::string path = folder / "file";
  const std::string content = std::string(9000, 'x') + std::string("\xff\xff\xff\xff\0\0\0\0", 8);
  for (std::size_t cut = 1; cut <= 5; ++cut) {
    WriteFile(path, content);
    const auto file = MappedFile::Open(path);
    Cut(path, content.size() - cut);
    EXPECT_EQ(AsText(file->bytes()) == content, cut <= 4);
    EXPECT_EQ(file->Whole().has_value(), cut <= 4) << "the end mark's last byte is gone with 5";
  }
}

TEST(MappedFile, WhatIsStillThereIsNoLoss) {
  const TempFolder folder;
  const std::string path = folder / "file";
  WriteFile(path, std::string(9000, 'x'));
  auto file = MappedFile::Open(path);
  WriteFile(folder / "other", std::string(9000, 'y'));
  std::filesystem::rename(folder / "other", path);  // the mapping keeps the old file
  EXPECT_EQ(Sum(file->bytes()), 9000u * 'x');
  EXPECT_TRUE(file->Whole());
  std::filesystem::remove(path);
  EXPECT_TRUE(file->Whole());
  const MappedFile moved = *std::move(file);
  EXPECT_TRUE(moved.Whole());
  WriteFile(path, "");
  EXPECT_TRUE(MappedFile::Open(path)->Whole());
  WriteFile(path, std::string(5000, '\0'));
  EXPECT_TRUE(MappedFile::Open(path)->Whole());
}

TEST(MappedFile, AFileThatIsGoneOrWholeAgainAfterwardsIsStillLost) {
  const TempFolder folder;
  const std::string path = folder / "file";
  for (const bool again : {true, false}) {
    WriteFile(path, std::string(9000, 'x'));
    const auto file = MappedFile::Open(path);
    Cut(path, 10);
    EXPECT_EQ(Sum(file->bytes()), 10u * 'x');
    Cut(path, 9000);
    if (!again) std::filesystem::remove(path);
    const Status whole = file->Whole();
    ASSERT_FALSE(whole);
    EXPECT_NE(whole.error().message().find(again ? "was written to while it was read"
                                                 : "was cut and removed or replaced"),
              std::string::npos)
        << whole.error().message();
  }
}

/// With its manifest and row indexes, and without.
class CutSet : public testing::TestWithParam<bool> {
 protected:
  CutSet() { Pack(); }
  void Pack() {
    set_ = PackSample(folder_, 450, 40'000);
    if (!GetParam()) std::filesystem::remove_all(set_ + "/_muster");
    const auto dataset = *Dataset::Open(set_);
    shard_ = set_ + "/" + dataset->shards()[1].name;
    size_ = ReadFile(shard_).size();
    rows_.clear();
    for (std::uint64_t row = 0; row < dataset->rows(); ++row) rows_.push_back(Copy(*dataset, row));
  }
  static std::string Copy(const Dataset& dataset, std::uint64_t row) {
    const auto view = dataset.Read(row);
    if (!view) return {};
    return std::string(AsText(view->image)) + "|" + std::string(view->path) + "|" +
           std::to_string(view->label) + "|" + std::string(view->source);
  }
  static std::vector<std::uint8_t> Content(const Batch& batch) {
    std::vector<std::uint8_t> content;
    for (const MicroShard& shard : batch.shards()) {
      content.insert(content.end(), shard.pixels.begin(), shard.pixels.end());
      for (const auto label : shard.labels) content.push_back(static_cast<std::uint8_t>(label));
    }
    return content;
  }
  /// Reads every row; the first error. No row that is taken differs from what was packed.
  Status ReadAll(const Dataset& dataset) {
    for (std::uint64_t row = 0; row < dataset.rows(); ++row) {
      MUSTER_TRY(dataset.Read(row));
      const std::string copy = Copy(dataset, row);
      MUSTER_TRY(dataset.CheckRead(std::span(&row, 1)));
      EXPECT_EQ(copy, rows_[row]) << row;
    }
    return Ok();
  }

  TempFolder folder_;
  std::string set_;
  std::string shard_;
  std::size_t size_ = 0;
  std::vector<std::string> rows_;
};

TEST_P(CutSet, NoRowIsReadThatIsNotThereAnyMoreWhereverTheCutIs) {
  for (std::size_t left = 0; left < size_ - 4; left += 1013) {
    Pack();
    const auto dataset = *Dataset::Open(set_);
    ASSERT_TRUE(ReadAll(*dataset));
    Cut(shard_, left);
    const Status read = ReadAll(*dataset);
    ASSERT_FALSE(read) << left;
    EXPECT_EQ(read.error().code(), Code::kDataLoss);
    EXPECT_EQ(read.error().message(), Shorter(shard_, size_, left));
  }
}

TEST_P(CutSet, ABatchThatIsReadForTheFirstTimeAfterTheCutIsToldOfToo) {
  for (std::size_t left = 0; left < size_ - 4; left += 3001) {
    Pack();
    const auto dataset = *Dataset::Open(set_);
    const std::uint64_t first = dataset->shard_first_rows()[1];
    ASSERT_TRUE(dataset->Read(first));
    Cut(shard_, left);
    const Status read = ReadAll(*dataset);
    ASSERT_FALSE(read) << left;
    EXPECT_EQ(read.error().message(), Shorter(shard_, size_, left));
  }
}

TEST_P(CutSet, ALoaderEndsWithTheErrorAndItsBatchesBeforeAreWhole) {
  for (const unsigned threads : {0u, 4u}) {
    Pack();
    const auto dataset = *Dataset::Open(set_);
    const auto whole = *Loader::Create(dataset, {.global_batch = 32, .threads = 0});
    const auto loader = *Loader::Create(
        dataset, {.global_batch = 32, .threads = threads, .memory = Bytes{1}});  // little ahead
    std::vector<std::vector<std::uint8_t>> wanted;
    for (int step = 0; step < 40; ++step) wanted.push_back(Content(**whole->Next()));
    std::optional<Error> error;
    for (std::size_t step = 0; step < wanted.size() && !error; ++step) {
      if (step == 3) Cut(shard_, size_ / 2);
      const auto batch = loader->Next();
      if (!batch) {
        error = batch.error();
        break;
      }
      EXPECT_EQ(Content(**batch), wanted[step]) << step;
    }
    ASSERT_TRUE(error);
    EXPECT_EQ(error->message(), Shorter(shard_, size_, size_ / 2));
  }
}

TEST_P(CutSet, VerifyTellsTheCutAndNothingThatItOnlySawInZeros) {
  for (int round = 0; round < 30; ++round) {
    Pack();
    std::atomic<bool> go = false;
    std::jthread cutter([&] {
      while (!go) std::this_thread::yield();
      for (int i = 0; i < round * 20; ++i) std::this_thread::yield();
      Cut(shard_, size_ / 3);
    });
    const auto places = *FindSplits(set_, OnDamage::kKeep);
    go = true;
    const auto reports = VerifySplits(places, {.threads = 2});
    cutter.join();
    ASSERT_TRUE(reports);
    for (const Damage& damage : reports->front().first) {
      EXPECT_EQ(damage.file, "train/" + std::filesystem::path(shard_).filename().string());
      EXPECT_TRUE(damage.what.find("became shorter while it was read") != std::string::npos ||
                  damage.what.find("the manifest says") != std::string::npos ||
                  damage.what.find("does not fit") != std::string::npos)
          << damage.ToString();
    }
    EXPECT_LE(reports->front().damages, 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, CutSet, testing::Bool(), [](const auto& with) {
  return with.param ? "WithChecksums" : "WithoutChecksums";
});

TEST(CutShard, VerifyGoesOnWithTheOthersAndTakesBackWhatItSawInZeros) {
  const TempFolder folder;
  const std::string set = PackSample(folder, 450, 15'000);
  std::filesystem::remove_all(set + "/_muster");
  const auto dataset = *Dataset::Open(set);
  const std::string name = dataset->shards()[1].name;
  const std::size_t size = dataset->shards()[1].bytes;
  // Without a manifest every shard is mapped when the set is opened, and looked at in its turn.
  bool cut = false;
  const auto reports =
      VerifySplits(*FindSplits(set), {.on_progress = [&](std::uint64_t, std::uint64_t) {
        if (!cut) Cut(set + "/" + name, 4096);
        cut = true;
      }});
  ASSERT_TRUE(reports);
  const VerifyReport& report = reports->front();
  ASSERT_EQ(report.damages, 1u) << report.first[1].ToString();
  EXPECT_EQ(report.first[0].file, "train/" + name);
  EXPECT_EQ(report.first[0].what, Shorter(set + "/" + name, size, 4096));
  EXPECT_EQ(report.shards, dataset->shards().size());
  EXPECT_EQ(report.rows, 450 - dataset->shards()[1].rows);
}

TEST(CutIndex, IsNamedAsTheFileThatBecameShorter) {
  const TempFolder folder;
  const std::string set = PackSample(folder, 450, 1'000'000);
  const auto dataset = *Dataset::Open(set);
  const std::string index = set + "/_muster/" + dataset->shards()[0].name + ".idx";
  const std::size_t size = ReadFile(index).size();
  ASSERT_TRUE(dataset->Read(420));
  Cut(index, 4097);
  const std::uint64_t row = 420;
  const auto read = dataset->Read(row);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message(), Shorter(index, size, 4097));
  EXPECT_EQ(dataset->CheckRead(std::span(&row, 1)).error().message(), Shorter(index, size, 4097));
}

}  // namespace
}  // namespace muster::data
