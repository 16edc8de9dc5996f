// A damaged schema of one shard: it alone is to blame, though every other file is held against one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/arrow/decode.h"
#include "data/dataset.h"
#include "data/layout/mapped_file.h"
#include "data/testing/sample_data.h"
#include "data/verify/verify.h"

namespace muster::data {
namespace {

class DamagedSchema : public testing::TestWithParam<std::int64_t> {
 protected:
  DamagedSchema() : set_(PackSample(folder_, 450, GetParam())) {
    const auto dataset = *Dataset::Open(set_);
    for (const ShardInfo& shard : dataset->shards()) shards_.push_back(shard.name);
    whole_ = *RowsOf(*dataset);
  }

  /// Every fiftieth, each as one string.
  static Result<std::vector<std::string>> RowsOf(const Dataset& dataset) {
    std::vector<std::string> rows;
    for (std::uint64_t row = 0; row < dataset.rows(); row += 50) {
      const RowView view = MUSTER_TRY(dataset.Read(row));
      rows.push_back(fmt::format(
          "{} {} {} {}", view.label, view.path, view.source,
          std::string_view(reinterpret_cast<const char*>(view.image.data()), view.image.size())));
    }
    return rows;
  }

  static std::uint64_t SchemaEnd(const std::string& path) {
    const MappedFile file = *MappedFile::Open(path);
    return arrow::StreamWalker::Open(file.bytes())->next();
  }

  /// Everything that is found names this shard.
  void ExpectBlamed(const std::string& shard, std::size_t at) {
    const VerifyReport report = VerifySplit(FindSplits(set_, OnDamage::kKeep)->front());
    EXPECT_GT(report.damages, 0u) << shard << ", byte " << at;
    EXPECT_TRUE(report.unread.empty());
    for (const Damage& damage : report.first) {
      EXPECT_EQ(damage.file, "train/" + shard) << damage.ToString() << ", byte " << at;
    }
  }

  /// The rows are right, or the error names this shard.
  void ExpectReaderBlames(const std::string& shard, std::size_t at) {
    const auto opened = Dataset::Open(set_);
    const auto rows = opened ? RowsOf(**opened) : Result<std::vector<std::string>>(opened.error());
    if (rows) {
      EXPECT_TRUE(*rows == whole_) << "byte " << at;
      return;
    }
    const Status read = rows.error();
    EXPECT_NE(read.error().message().find(shard), std::string::npos) << read.error().ToString();
    EXPECT_EQ(read.error().message().find("info.json names"), std::string::npos) << at;
  }

  TempFolder folder_;
  const std::string set_;
  std::vector<std::string> shards_, whole_;
};

TEST_P(DamagedSchema, IsBlamedOnItsShardAlone) {
  for (const std::size_t number : {std::size_t{0}, shards_.size() / 2}) {
    const std::string path = set_ + "/" + shards_[number];
    const std::uint64_t end = SchemaEnd(path);
    ASSERT_GT(end, 400u);
    // Every seventh byte, each time another bit: all of them take minutes with a sanitizer.
    for (std::size_t at = number % 7; at < end; at += 7) {
      const int bit = static_cast<int>(at % 8);
      FlipBit(path, at, bit);
      ExpectBlamed(shards_[number], at);
      ExpectReaderBlames(shards_[number], at);
      FlipBit(path, at, bit);
    }
  }
}

TEST_P(DamagedSchema, OfEveryShardIsBlamedOnEach) {
  for (const std::string& shard : shards_) {
    const std::string path = set_ + "/" + shard;
    // A letter of a class or a column in it.
    FlipBit(path, ReadFile(path).find("ClassLabel") + 2);
  }
  const VerifyReport report = VerifySplit(FindSplits(set_, OnDamage::kKeep)->front());
  EXPECT_EQ(report.damages, shards_.size());
  for (std::size_t i = 0; i < report.first.size(); ++i) {
    EXPECT_EQ(report.first[i].file, "train/" + shards_[i]) << report.first[i].ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, DamagedSchema, testing::Values(60'000, 10'000'000),
                         [](const auto& size) { return size.param < 100'000 ? "Several" : "One"; });

}  // namespace
}  // namespace muster::data
