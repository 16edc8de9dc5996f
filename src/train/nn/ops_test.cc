#include "train/nn/ops.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "train/backward.h"

namespace muster::train::nn {
namespace {

at::Tensor Ramp(at::IntArrayRef shape, double scale) {
  std::int64_t count = 1;
  for (const std::int64_t n : shape) count *= n;
  return (at::arange(count, at::kFloat) * scale).sin().view(shape);
}

// A parameter of the flat model beside a plain leaf of the same value.
struct Pair {
  Pair(Unit& unit, const std::string& name, std::vector<std::int64_t> shape)
      : flat(unit.Add(name, std::move(shape))) {}
  void Fill(double scale) {
    plain = Ramp(flat.shape, scale).requires_grad_(true);
    flat.value.variable_data().copy_(plain.variable_data());
  }
  bool SameGradient() const { return at::equal(flat.gradient, plain.grad()); }
  Parameter& flat;
  at::Tensor plain;
};

class Ops : public ::testing::Test {
 protected:
  FlatModel model;
  Unit& unit = model.AddUnit("u");
};

TEST_F(Ops, LinearHasTheBitsOfTorchsOwn) {
  Pair weight(unit, "w", {9, 6});
  Pair bias(unit, "b", {9});
  ASSERT_TRUE(model.Materialize());
  weight.Fill(0.3);
  bias.Fill(0.7);
  const at::Tensor x = Ramp({2, 5, 6}, 0.1).requires_grad_(true);
  const at::Tensor y = at::linear(x, weight.plain, bias.plain);
  (y * y).sum().backward();
  const at::Tensor x2 = x.variable_data().clone().requires_grad_(true);
  model.BeginPass();
  const at::Tensor y2 = Linear(x2, weight.flat, bias.flat);
  ASSERT_TRUE(RunBackward((y2 * y2).sum(), 1));
  EXPECT_TRUE(at::equal(y, y2));
  EXPECT_TRUE(at::equal(x.grad(), x2.grad()));
  EXPECT_TRUE(weight.SameGradient());
  EXPECT_TRUE(bias.SameGradient());
}

TEST_F(Ops, LayerNormHasTheBitsOfTorchsOwn) {
  Pair gain(unit, "g", {12});
  Pair bias(unit, "b", {12});
  ASSERT_TRUE(model.Materialize());
  gain.Fill(0.3);
  bias.Fill(0.7);
  const at::Tensor x = Ramp({4, 3, 12}, 0.1).requires_grad_(true);
  const at::Tensor y = at::layer_norm(x, {12}, gain.plain, bias.plain);
  (y * y).sum().backward();
  const at::Tensor x2 = x.variable_data().clone().requires_grad_(true);
  model.BeginPass();
  const at::Tensor y2 = LayerNorm(x2, gain.flat, bias.flat);
  ASSERT_TRUE(RunBackward((y2 * y2).sum(), 1));
  EXPECT_TRUE(at::equal(y, y2));
  EXPECT_TRUE(at::equal(x.grad(), x2.grad()));
  EXPECT_TRUE(gain.SameGradient());
  EXPECT_TRUE(bias.SameGradient());
}

TEST_F(Ops, AttentionAgreesWithItsFormulaInFp64) {
  const std::int64_t heads = 3;
  const at::Tensor qkv = Ramp({2, 7, 3 * 12}, 0.37).requires_grad_(true);
  const at::Tensor y = SelfAttention(qkv, heads);
  ASSERT_TRUE(RunBackward((y * y).sum(), 1));

  const at::Tensor exact = qkv.variable_data().to(at::kDouble).requires_grad_(true);
  const at::Tensor parts = exact.view({2, 7, 3, heads, 4}).permute({2, 0, 3, 1, 4});
  const at::Tensor scores = parts[0].matmul(parts[1].transpose(-2, -1)) / std::sqrt(4.0);
  const at::Tensor out = scores.softmax(-1).matmul(parts[2]).transpose(1, 2).reshape({2, 7, 12});
  (out * out).sum().backward();
  // fp32 rounding of sums of a dozen terms below one.
  EXPECT_LT((y.to(at::kDouble) - out).abs().max().item<double>(), 1e-6);
  EXPECT_LT((qkv.grad().to(at::kDouble) - exact.grad()).abs().max().item<double>(), 5e-6);
}

TEST_F(Ops, GeluAgreesWithTorchsOwn) {
  const at::Tensor x = Ramp({5, 33}, 0.9).mul(3).requires_grad_(true);
  const at::Tensor y = at::gelu(x);
  (y * y).sum().backward();
  const at::Tensor x2 = x.variable_data().clone().requires_grad_(true);
  const at::Tensor y2 = Gelu(x2);
  ASSERT_TRUE(RunBackward((y2 * y2).sum(), 1));
  EXPECT_LT((y - y2).abs().max().item<float>(), 1e-6);
  EXPECT_LT((x.grad() - x2.grad()).abs().max().item<float>(), 4e-6);
}

TEST_F(Ops, CrossEntropySumsOverValidRowsOnly) {
  const at::Tensor logits = Ramp({6, 10}, 1.7).requires_grad_(true);
  const at::Tensor labels = at::arange(6);
  const LossSum loss = CrossEntropy(logits, labels, 4, 0.1);
  ASSERT_TRUE(RunBackward(loss.sum, 0.5));
  EXPECT_EQ(loss.count, 4);

  const at::Tensor exact = logits.variable_data().to(at::kDouble).requires_grad_(true);
  const at::Tensor expected = at::cross_entropy_loss(exact.narrow(0, 0, 4), labels.narrow(0, 0, 4),
                                                     {}, at::Reduction::Sum, -100, 0.1);
  (expected * 0.5).backward();
  EXPECT_NEAR(loss.sum.item<double>(), expected.item<double>(), 1e-12);
  EXPECT_LT((logits.grad().to(at::kDouble) - exact.grad()).abs().max().item<double>(), 1e-7);
  EXPECT_EQ(logits.grad().narrow(0, 4, 2).abs().sum().item<float>(), 0.0F);
}

}  // namespace
}  // namespace muster::train::nn
