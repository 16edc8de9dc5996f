#include "train/flat.h"

#include <gtest/gtest.h>

#include "train/arithmetic.h"
#include "train/backward.h"
#include "train/nn/ops.h"

namespace muster::train {
namespace {

// For every test of the program: later than the first matrix product would be too late.
class PinnedArithmetic final : public ::testing::Environment {
  void SetUp() override { ASSERT_TRUE(PinArithmetic()); }
};
const auto* const pinned_arithmetic = ::testing::AddGlobalTestEnvironment(new PinnedArithmetic);

TEST(FlatModel, StartsEveryParameterOn64BytesAndKeepsNamesAndOffsets) {
  FlatModel model;
  Unit& unit = model.AddUnit("u");
  const Parameter& a = unit.Add("a", {3, 5});
  const Parameter& b = unit.Add("b", {7});
  ASSERT_TRUE(model.Materialize());
  EXPECT_EQ(a.name, "u.a");
  EXPECT_EQ(b.offset, 16);
  EXPECT_EQ(unit.values().size(), 32U);
  for (const at::Tensor& tensor : {a.value, a.gradient, b.value, b.gradient}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0U);
  }
  EXPECT_EQ(model.ParameterCount(), 22);
  EXPECT_EQ(model.GradientBytes(), 128U);
}

TEST(FlatModel, AsksForAllGradientMemoryAtOnceSoThatARefusalCostsNothing) {
  FlatModel model;
  Unit& first = model.AddUnit("first");
  first.Add("w", {16});
  Unit& second = model.AddUnit("second");
  second.Add("w", {3});
  std::vector<std::size_t> asked;
  const Status status = model.Materialize([&](std::size_t bytes) {
    asked.push_back(bytes);
    return nullptr;
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), Code::kExhausted);
  EXPECT_EQ(asked, std::vector<std::size_t>{model.GradientBytes()});
  // The same model takes memory from elsewhere.
  ASSERT_TRUE(model.Materialize());
  EXPECT_EQ(first.gradients().size(), 16U);
  EXPECT_EQ(second.gradients().data(), first.gradients().data() + 16);
}

TEST(Guarded, TurnsWhateverIsThrownIntoAnError) {
  const auto code_of = [](const std::function<Status()>& body) {
    return Guarded("x", body).error().code();
  };
  EXPECT_EQ(code_of([]() -> Status { throw std::out_of_range("map::at"); }), Code::kBug);
  EXPECT_EQ(code_of([]() -> Status { throw std::bad_alloc(); }), Code::kExhausted);
  EXPECT_EQ(code_of([]() -> Status { return at::ones({2}).view({3}), Ok(); }), Code::kBug);
  EXPECT_EQ(code_of([]() -> Status { return at::empty({std::int64_t{1} << 55}), Ok(); }),
            Code::kExhausted);
}

struct Counted {
  Counted() {
    model.OnUnitReady([this](Unit& unit) { ready.push_back(unit.name()); });
  }
  FlatModel model;
  std::vector<std::string> ready;
};

TEST(FlatModel, ReportsEachUnitOnceWhenItsLastGradientIsThere) {
  Counted counted;
  Unit& first = counted.model.AddUnit("first");
  Unit& second = counted.model.AddUnit("second");
  Parameter& positions = first.Add("positions", {4});
  Parameter& weight = second.Add("weight", {2, 4});
  Parameter& bias = second.Add("bias", {2});
  ASSERT_TRUE(counted.model.Materialize());
  for (int pass = 0; pass < 2; ++pass) {
    counted.ready.clear();
    counted.model.BeginPass();
    const at::Tensor x = at::ones({3, 4}) + positions.value;
    ASSERT_TRUE(RunBackward(nn::Linear(x, weight, bias).sum(), 1));
    EXPECT_EQ(counted.ready, (std::vector<std::string>{"second", "first"}));
    counted.model.EndPass();
    EXPECT_EQ(counted.ready.size(), 2U);
    // Overwritten in the second pass, not added to.
    EXPECT_EQ(bias.gradient[0].item<float>(), 3.0F);
  }
}

TEST(FlatModel, GivesUnusedParametersZeroGradientsAtTheEndOfThePass) {
  Counted counted;
  Unit& unit = counted.model.AddUnit("unit");
  Parameter& used = unit.Add("used", {2});
  Parameter& unused = unit.Add("unused", {2});
  ASSERT_TRUE(counted.model.Materialize());
  unused.gradient.fill_(7);
  counted.model.BeginPass();
  ASSERT_TRUE(RunBackward(used.value.sum(), 2));
  EXPECT_TRUE(counted.ready.empty());
  counted.model.EndPass();
  EXPECT_EQ(counted.ready.size(), 1U);
  EXPECT_EQ(unused.gradient.abs().sum().item<float>(), 0.0F);
  EXPECT_EQ(used.gradient[0].item<float>(), 2.0F);
}

TEST(FlatModel, AddsTheGradientsOfALayerThatIsUsedTwice) {
  Counted counted;
  Unit& unit = counted.model.AddUnit("unit");
  Parameter& weight = unit.Add("weight", {3, 3});
  Parameter& bias = unit.Add("bias", {3});
  ASSERT_TRUE(counted.model.Materialize());
  weight.value.variable_data().fill_(0.5);
  counted.model.BeginPass();
  const at::Tensor once = nn::Linear(at::ones({1, 3}), weight, bias);
  ASSERT_TRUE(RunBackward(nn::Linear(once, weight, bias).sum(), 1));
  EXPECT_EQ(counted.ready.size(), 1U);
  // d/db of sum(W(Wx + b) + b) = Wᵀ1 + 1.
  EXPECT_EQ(bias.gradient[0].item<float>(), 2.5F);
}

}  // namespace
}  // namespace muster::train
