#include "data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/no_threads_test.h"
#include "data/stream/decode_pool.h"
#include "data/stream/step_plan.h"
#include "data/testing/sample_data.h"

namespace muster::data {
namespace {

/// Row ids by (step, virtual shard), as one rank after the other sees them.
using Stream = std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::uint64_t>>;

std::unique_ptr<Loader> MakeLoader(const std::shared_ptr<const Dataset>& set,
                                   const LoaderOptions& options) {
  auto loader = Loader::Create(set, options);
  MUSTER_CHECK(loader.has_value());
  return std::move(*loader);
}

void Collect(Loader& loader, std::uint64_t steps, Stream& stream) {
  for (std::uint64_t i = 0; i < steps; ++i) {
    const auto batch = loader.Next();
    ASSERT_TRUE(batch) << batch.error().ToString();
    ASSERT_TRUE(batch->has_value());
    for (const MicroShard& shard : (*batch)->shards()) {
      stream[{(*batch)->step(), shard.index}] = {shard.rows.begin(), shard.rows.end()};
    }
  }
}

class LoaderTest : public testing::Test {
 protected:
  LoaderTest() : set_(*Dataset::Open(PackSample(folder_, kRows))) {}
  static constexpr std::uint32_t kRows = 1000;
  TempFolder folder_;
  std::shared_ptr<const Dataset> set_;
};

TEST_F(LoaderTest, AnyWorldSizeReadsTheSameMicroShards) {
  Stream expected;
  Collect(*MakeLoader(set_, {.global_batch = 64}), 40, expected);
  for (const std::uint32_t world : {2u, 4u, 8u}) {
    Stream stream;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      Collect(*MakeLoader(set_, {.global_batch = 64, .rank = Rank(rank), .world = world}), 40,
              stream);
    }
    EXPECT_EQ(stream, expected) << world;
  }
}

TEST_F(LoaderTest, ThreadsAndMemoryDoNotChangeTheStream) {
  Stream expected;
  Collect(*MakeLoader(set_, {.global_batch = 64, .threads = 0}), 40, expected);
  for (const unsigned threads : {1u, 4u}) {
    for (const Bytes memory : {Bytes{1}, 64_MiB}) {
      Stream stream;
      Collect(*MakeLoader(set_, {.global_batch = 64, .threads = threads, .memory = memory}), 40,
              stream);
      EXPECT_EQ(stream, expected) << threads;
    }
  }
}

TEST_F(LoaderTest, AnEpochVisitsEachRowAtMostOnce) {
  const auto loader = MakeLoader(set_, {.global_batch = 64, .seed = 3});
  EXPECT_EQ(loader->steps_per_epoch(), 15u);
  std::multiset<std::uint64_t> rows;
  for (std::uint64_t step = 0; step < 15; ++step) {
    const auto batch = loader->Next();
    for (const MicroShard& shard : (*batch)->shards()) {
      rows.insert(shard.rows.begin(), shard.rows.end());
    }
  }
  EXPECT_EQ(rows.size(), 960u);
  EXPECT_EQ(std::set<std::uint64_t>(rows.begin(), rows.end()).size(), 960u);
}

TEST_F(LoaderTest, GivesPixelsAndLabelsOfTheRows) {
  const auto loader = MakeLoader(set_, {.global_batch = 40, .threads = 2});
  const auto batch = loader->Next();
  ASSERT_TRUE(batch) << batch.error().ToString();
  EXPECT_EQ(loader->image(), (ImageShape{4, 6, 1}));
  for (const MicroShard& shard : (*batch)->shards()) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(shard.pixels.data()) % 64, 0u);
    EXPECT_EQ(shard.valid, 5u);
    for (std::size_t i = 0; i < shard.rows.size(); ++i) {
      EXPECT_EQ(shard.labels[i], static_cast<std::int64_t>(shard.rows[i] % 10));
      EXPECT_EQ(shard.pixels[i * 24 + 7], SamplePixel(shard.rows[i], 7));
    }
  }
}

TEST_F(LoaderTest, ContinuesAtASavedPositionOnAnyWorld) {
  Stream expected, resumed;
  const auto whole = MakeLoader(set_, {.global_batch = 64});
  Collect(*whole, 40, expected);
  const auto first = MakeLoader(set_, {.global_batch = 64});
  Collect(*first, 23, resumed);
  const auto state = LoaderState::Parse(first->State().ToText());
  ASSERT_TRUE(state);
  EXPECT_EQ(state->epoch, 1u);
  EXPECT_EQ(state->samples, 8u * 64);
  EXPECT_EQ(*state, whole->StateAt(23));
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const auto loader = MakeLoader(set_, {.global_batch = 64, .rank = Rank(rank), .world = 2});
    Stream ahead;
    Collect(*loader, 2, ahead);  // already running elsewhere
    ASSERT_TRUE(loader->Restore(*state));
    Collect(*loader, 17, resumed);
  }
  EXPECT_EQ(resumed, expected);
}

TEST_F(LoaderTest, RefusesAPositionOfSomethingElse) {
  const auto loader = MakeLoader(set_, {.global_batch = 64});
  const auto error_of = [&](auto change) {
    LoaderState state = loader->State();
    change(state);
    const Status restored = loader->Restore(state);
    return restored ? std::string("no error") : restored.error().message();
  };
  EXPECT_NE(error_of([](LoaderState& s) { s.dataset.bytes[0] ^= 1; }).find("dataset"),
            std::string::npos);
  EXPECT_NE(error_of([](LoaderState& s) { s.seed = 9; }).find("of seed 9"), std::string::npos);
  EXPECT_NE(error_of([](LoaderState& s) { s.batch = 32; }).find("global batch 32"),
            std::string::npos);
  EXPECT_NE(error_of([](LoaderState& s) { s.mode = OrderMode::kFull; }).find("order full"),
            std::string::npos);
  EXPECT_NE(error_of([](LoaderState& s) { s.samples = 63; }).find("sample 63"), std::string::npos);
  EXPECT_NE(error_of([](LoaderState& s) { s.epoch = ~0ull; }).find("epoch"), std::string::npos);
}

TEST_F(LoaderTest, EvaluationSeesEveryRowOnceWithTheRestMasked) {
  std::vector<std::uint64_t> rows;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const auto loader = MakeLoader(set_, {.global_batch = 64,
                                          .virtual_shards = 0,
                                          .rank = Rank(rank),
                                          .world = 3,
                                          .order = OrderMode::kSequential,
                                          .tail = Tail::kPad,
                                          .epochs = 1});
    std::uint64_t steps = 0;
    for (auto batch = loader->Next(); batch && *batch; batch = loader->Next(), ++steps) {
      for (const MicroShard& shard : (*batch)->shards()) {
        rows.insert(rows.end(), shard.rows.begin(), shard.rows.begin() + shard.valid);
      }
    }
    EXPECT_EQ(steps, 16u);
  }
  std::sort(rows.begin(), rows.end());
  std::vector<std::uint64_t> all(kRows);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(rows, all);
}

TEST_F(LoaderTest, ALabelBeyondTheClassesIsTheErrorOfItsRow) {
  const LoaderOptions options{.global_batch = 16, .order = OrderMode::kSequential, .classes = 9};
  const auto batch = MakeLoader(set_, options)->Next();  // labels are the row modulo 10
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code(), Code::kPrecondition);
  EXPECT_NE(batch.error().message().find("row 9: the label is 9, expected 0 to 8"),
            std::string::npos)
      << batch.error().message();
  EXPECT_TRUE(MakeLoader(set_, {.global_batch = 16, .classes = 10})->Next());
}

/// Rows of grey and colour images whose labels are given.
class MixedSet final : public Dataset {
 public:
  explicit MixedSet(std::vector<std::int64_t> labels) : labels_(std::move(labels)) {
    ends_ = {0, labels_.size()};
  }
  const DatasetId& id() const override { return id_; }
  std::uint64_t rows() const override { return labels_.size(); }
  const std::vector<std::string>& label_names() const override { return names_; }
  const std::vector<ShardInfo>& shards() const override { return shards_; }
  std::span<const std::uint64_t> shard_first_rows() const override { return ends_; }
  bool has_checksums() const override { return false; }
  Result<RowView> Read(std::uint64_t row) const override {
    return RowView{.image = row == 2 ? colour_ : grey_, .label = labels_[row]};
  }
  Status CheckRead(std::span<const std::uint64_t>) const override { return Ok(); }
  std::string Where(std::uint64_t row) const override {
    return "mixed, row " + std::to_string(row);
  }

 private:
  std::vector<std::int64_t> labels_;
  std::vector<std::uint64_t> ends_;
  DatasetId id_;
  std::vector<std::string> names_;
  std::vector<ShardInfo> shards_{{.name = "mixed"}};
  std::vector<std::byte> grey_ = *EncodePng({2, 2, 1}, std::vector<std::uint8_t>(4, 9));
  std::vector<std::byte> colour_ = *EncodePng({2, 2, 3}, std::vector<std::uint8_t>(12, 9));
};

TEST_F(LoaderTest, AStepThatIsNotDecodedIsToldAfterAWhileAndMayComeLater) {
  const auto filler = BatchFiller::Create(set_, {.global_batch = 64});
  ASSERT_TRUE(filler) << filler.error().ToString();
  // No step is ever begun, as on a disk that does not answer.
  const auto stuck = DecodePool::Start(*filler, {.patience = std::chrono::milliseconds(1)});
  ASSERT_TRUE(stuck) << stuck.error().ToString();
  for (int i = 0; i < 2; ++i) {
    const auto batch = (*stuck)->Take();
    ASSERT_FALSE(batch);
    EXPECT_EQ(batch.error().code(), Code::kDeadline);
    EXPECT_EQ(batch.error().message(), "step 0 was not decoded within 1.00 ms");
    EXPECT_NE(batch.error().hint().find("disk"), std::string::npos);
  }
}

TEST(Loader, AMissingLabelIsAnErrorWhereClassesAreCounted) {
  const auto set = std::make_shared<MixedSet>(std::vector<std::int64_t>{1, -1, 0, 0});
  LoaderOptions options{.global_batch = 4,
                        .virtual_shards = 0,
                        .order = OrderMode::kSequential,
                        .colour = Colour::kMayDrop};
  EXPECT_TRUE(MakeLoader(set, options)->Next());
  options.classes = 2;
  const auto batch = MakeLoader(set, options)->Next();
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().message(), "mixed, row 1: the label is -1, expected 0 to 1");
}

TEST(Loader, AColourImageBehindAGreyOneIsAnErrorUnlessColourMayGo) {
  const auto set = std::make_shared<MixedSet>(std::vector<std::int64_t>{0, 0, 0, 0});
  LoaderOptions options{.global_batch = 4, .virtual_shards = 0, .order = OrderMode::kSequential};
  const auto batch = MakeLoader(set, options)->Next();
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code(), Code::kPrecondition);
  EXPECT_NE(batch.error().ToString().find("mixed, row 2: the image has 3 channels"),
            std::string::npos);
  EXPECT_NE(batch.error().hint().find("--channels 3"), std::string::npos);
  options.colour = Colour::kMayDrop;
  EXPECT_TRUE(MakeLoader(set, options)->Next());
  options.colour = Colour::kKeep;
  options.image = {.channels = 3};  // grey spreads over three channels without loss
  EXPECT_TRUE(MakeLoader(set, options)->Next());
  options.colour = Colour::kSame;
  const auto spread = MakeLoader(set, options)->Next();
  ASSERT_FALSE(spread);
  EXPECT_EQ(spread.error().message(),
            "mixed, row 0: the image has 1 channel, the first one of the set has 3");
}

TEST_F(LoaderTest, ABatchOutlivesItsLoader) {
  auto loader = MakeLoader(set_, {.global_batch = 64});
  const auto batch = loader->Next();
  loader.reset();
  EXPECT_EQ((*batch)->shards().size(), 8u);
  EXPECT_LT((*batch)->shards()[0].pixels[0], 256);
}

TEST_F(LoaderTest, ASplitWithoutANameIsNoneThatIsAskedForByName) {
  std::string state = ReadFile(folder_ / "set/state.json");
  const auto at = state.find("\"train\"");
  ASSERT_NE(at, std::string::npos);
  WriteFile(folder_ / "set/state.json", state.replace(at, 7, "null"));
  EXPECT_TRUE(Dataset::Open(folder_ / "set"));
  for (const char* name : {"train", "test"}) {
    const auto opened = Dataset::Open(folder_ / "set", {.split = name});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), Code::kNotFound);
    EXPECT_NE(opened.error().hint().find("one without a name"), std::string::npos);
  }
}

TEST_F(LoaderTest, ADamagedRowIsTheErrorOfItsStep) {
  const std::string shard = (folder_ / "set/") + set_->shards()[0].name;
  const RowView row = *set_->Read(3);
  const auto at = static_cast<std::size_t>(ReadFile(shard).find(std::string(AsText(row.image))));
  FlipBit(shard, at + row.image.size() / 2);
  const auto reopened = *Dataset::Open(folder_ / "set");
  for (const unsigned threads : {0u, 3u}) {
    const auto loader = MakeLoader(
        reopened, {.global_batch = 8, .order = OrderMode::kSequential, .threads = threads});
    const auto batch = loader->Next();
    ASSERT_FALSE(batch);
    EXPECT_EQ(batch.error().code(), Code::kDataLoss);
    EXPECT_NE(batch.error().message().find("batch 0, row 3: the image is damaged"),
              std::string::npos)
        << batch.error().message();
    EXPECT_FALSE(loader->Next());
  }
}

TEST_F(LoaderTest, SaysThatItsThreadsCannotBeStartedAndGoesOnWhenTheyCan) {
  const auto loader = MakeLoader(set_, {.global_batch = 64, .threads = 2});
  {
    const NoThreads limit;
    const auto batch = loader->Next();
    ASSERT_FALSE(batch);
    EXPECT_EQ(batch.error().code(), Code::kExhausted);
    EXPECT_NE(batch.error().message().find("0 of 2 threads"), std::string::npos)
        << batch.error().message();
  }
  const auto batch = loader->Next();
  ASSERT_TRUE(batch) << batch.error().ToString();
  EXPECT_EQ((*batch)->step(), 0u);
}

TEST_F(LoaderTest, TakesNoAbsurdNumberOfThreads) {
  const auto loader = Loader::Create(set_, {.global_batch = 64, .threads = 100'000});
  ASSERT_FALSE(loader);
  EXPECT_EQ(loader.error().message(), "100000 decode threads, at most 1024");
}

struct SplitCase {
  std::uint32_t batch, shards, world;
  std::string error;
};

TEST(SlotsOfRank, CoverTheStepOnceForEveryWorld) {
  for (std::uint32_t world = 1; world <= 16; ++world) {
    std::uint64_t next = 0;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const auto ranges = SlotsOfRank(
          {.global_batch = 37, .virtual_shards = 0, .rank = Rank(rank), .world = world});
      ASSERT_TRUE(ranges);
      EXPECT_EQ((*ranges)[0].begin, next);
      next += (*ranges)[0].count;
    }
    EXPECT_EQ(next, 37u);
  }
}

TEST(SlotsOfRank, NamesWhatDoesNotFit) {
  const std::vector<SplitCase> cases{
      {100, 8, 1, "a global batch of 100 is no multiple of 8 virtual shards"},
      {128, 8, 3, "3 ranks do not divide 8 virtual shards"},
      {2, 0, 3, "a global batch of 2 for 3 ranks"},
      {128, 8, 0, "rank 0 of a world of 0"}};
  for (const SplitCase& c : cases) {
    const auto ranges =
        SlotsOfRank({.global_batch = c.batch, .virtual_shards = c.shards, .world = c.world});
    ASSERT_FALSE(ranges);
    EXPECT_EQ(ranges.error().message(), c.error);
  }
}

}  // namespace
}  // namespace muster::data
