#include "data/order/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "data/order/loader_state.h"
#include "data/order/permutation.h"

namespace muster::data {
namespace {

bool IsBijection(std::uint64_t n, std::uint64_t key) {
  const Permutation permuted(n, key);
  std::vector<bool> seen(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t at = permuted(i);
    if (at >= n || seen[at]) return false;
    seen[at] = true;
  }
  return true;
}

TEST(Permutation, IsABijectionForEverySizeUpTo5000) {
  for (std::uint64_t n = 1; n <= 5000; ++n) ASSERT_TRUE(IsBijection(n, n * 7919)) << n;
}

TEST(Permutation, IsABijectionAroundPowersOfTwo) {
  for (std::uint64_t n = 4; n <= std::uint64_t{1} << 18; n *= 2) {
    for (const std::uint64_t near : {n - 1, n, n + 1}) ASSERT_TRUE(IsBijection(near, 3)) << near;
  }
}

TEST(Permutation, KeepsItsSequenceForEver) {
  // A change here changes what a checkpoint's position means: raise kOrderVersion with it.
  const Permutation permuted(10, 42);
  std::vector<std::uint64_t> got;
  for (std::uint64_t i = 0; i < 10; ++i) got.push_back(permuted(i));
  EXPECT_EQ(got, (std::vector<std::uint64_t>{7, 6, 9, 1, 0, 3, 8, 2, 5, 4}));
}

TEST(Permutation, MovesEveryValueEverywhere) {
  // Mean displacement of a uniform shuffle of n is n/3.
  constexpr std::uint64_t kRows = 10'000;
  const Permutation permuted(kRows, 1);
  double moved = 0;
  for (std::uint64_t i = 0; i < kRows; ++i) {
    moved += std::abs(static_cast<double>(permuted(i)) - static_cast<double>(i));
  }
  EXPECT_NEAR(moved / kRows, kRows / 3.0, kRows / 30.0);
}

struct OrderCase {
  OrderMode mode;
  std::uint32_t window;
};
class OrderModes : public testing::TestWithParam<OrderCase> {};

TEST_P(OrderModes, VisitsEveryRowOnce) {
  const std::vector<std::uint64_t> firsts{0, 7, 7, 20, 21, 40, 41, 100};  // one shard is empty
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const Order order(firsts, {GetParam().mode, GetParam().window, 5, epoch});
    std::vector<std::uint64_t> rows;
    for (std::uint64_t g = 0; g < order.rows(); ++g) rows.push_back(order.At(g));
    std::sort(rows.begin(), rows.end());
    std::vector<std::uint64_t> all(100);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(rows, all);
  }
}
INSTANTIATE_TEST_SUITE_P(
    All, OrderModes,
    testing::Values(OrderCase{OrderMode::kSequential, 16}, OrderCase{OrderMode::kShard, 16},
                    OrderCase{OrderMode::kWindow, 1}, OrderCase{OrderMode::kWindow, 3},
                    OrderCase{OrderMode::kWindow, 16}, OrderCase{OrderMode::kFull, 16}));

TEST(Order, StaysInsideAWindowOfShards) {
  std::vector<std::uint64_t> firsts;
  for (std::uint64_t shard = 0; shard <= 8; ++shard) firsts.push_back(shard * 10);
  const Order order(firsts, {OrderMode::kWindow, 2, 9, 0});
  for (std::uint64_t begin = 0; begin < 80; begin += 20) {
    std::vector<std::uint64_t> shards;
    for (std::uint64_t g = begin; g < begin + 20; ++g) shards.push_back(order.At(g) / 10);
    std::sort(shards.begin(), shards.end());
    EXPECT_EQ(std::unique(shards.begin(), shards.end()) - shards.begin(), 2);
  }
}

TEST(Order, DiffersBetweenEpochsAndSeeds) {
  const std::vector<std::uint64_t> firsts{0, 1000};
  const auto first_rows = [&](std::uint64_t seed, std::uint64_t epoch) {
    const Order order(firsts, {OrderMode::kFull, 16, seed, epoch});
    return std::vector<std::uint64_t>{order.At(0), order.At(1), order.At(2), order.At(3)};
  };
  EXPECT_NE(first_rows(1, 0), first_rows(1, 1));
  EXPECT_NE(first_rows(1, 0), first_rows(2, 0));
}

TEST(Order, SequentialIsTheIdentity) {
  const Order order(std::vector<std::uint64_t>{0, 3, 5}, {OrderMode::kSequential});
  EXPECT_EQ(order.At(4), 4u);
}

TEST(OrderMode, NamesParseBack) {
  for (const auto mode :
       {OrderMode::kSequential, OrderMode::kShard, OrderMode::kWindow, OrderMode::kFull}) {
    EXPECT_EQ(*ParseOrderMode(NameOf(mode)), mode);
  }
  EXPECT_FALSE(ParseOrderMode("random"));
}

LoaderState LargestState() {
  LoaderState state{.mode = OrderMode::kSequential, .window = ~0u, .batch = ~0u, .context = ~0u};
  state.dataset.bytes.fill(0xab);
  state.seed = state.epoch = state.samples = ~0ull;
  return state;
}

TEST(LoaderState, FitsInto200BytesAndParsesBack) {
  const std::string text = LargestState().ToText();
  EXPECT_LE(text.size(), 200u) << text;
  EXPECT_EQ(*LoaderState::Parse(text), LargestState());
}

TEST(LoaderState, NamesTheMalformedField) {
  const std::string text = LoaderState{.batch = 128}.ToText();
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string copy = text;
    copy.replace(copy.find(from), from.size(), to);
    const auto parsed = LoaderState::Parse(copy);
    return parsed ? "no error" : parsed.error().message();
  };
  EXPECT_NE(broken("batch=128", "batch=-1").find("'batch'"), std::string::npos);
  EXPECT_NE(broken(" seed=0", "").find("'seed'"), std::string::npos);
  EXPECT_NE(broken("window:16", "window:0").find("'order'"), std::string::npos);
  EXPECT_NE(broken("order=1:", "order=9:").find("version 9"), std::string::npos);
  EXPECT_FALSE(LoaderState::Parse(text + " more=1"));
  EXPECT_FALSE(LoaderState::Parse(""));
  EXPECT_FALSE(LoaderState::Parse(std::string(100'000, 'x')));
}

}  // namespace
}  // namespace muster::data
