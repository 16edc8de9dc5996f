#include "train/optim/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace muster::train {
namespace {

struct State {
  std::vector<float> p, g, m, v;
  bool operator==(const State&) const = default;
};

State RandomState(std::size_t length) {
  Rng rng(5);
  State state;
  const auto fill = [&](std::vector<float>& out, double low, double high) {
    for (std::size_t i = 0; i < length; ++i) {
      out.push_back(static_cast<float>(low + (high - low) * rng.Uniform()));
    }
  };
  fill(state.p, -1, 1);
  fill(state.g, -0.1, 0.1);
  fill(state.m, -0.1, 0.1);
  fill(state.v, 0, 0.01);
  return state;
}

constexpr AdamWStep kStep{.gradient_scale = 0.7F,
                          .keep = 0.9999F,
                          .one_minus_beta1 = 0.1F,
                          .beta2 = 0.999F,
                          .one_minus_beta2 = 0.001F,
                          .step_size = 0.0123F,
                          .inverse_root_bias2 = 3.1F,
                          .epsilon = 1e-8F};

void Update(State& s, std::size_t begin, std::size_t end, Instructions instructions) {
  UpdateAdamW(kStep,
              {.parameter = s.p.data() + begin,
               .gradient = s.g.data() + begin,
               .moment1 = s.m.data() + begin,
               .moment2 = s.v.data() + begin,
               .length = end - begin},
              instructions);
}

std::vector<Instructions> Available() {
  std::vector<Instructions> all{Instructions::kScalar};
  if (BestInstructions() != Instructions::kScalar) all.push_back(Instructions::kAvx2);
  if (BestInstructions() == Instructions::kAvx512) all.push_back(Instructions::kAvx512);
  return all;
}

TEST(AdamWKernel, HasTheSameBitsOnEveryInstructionSetAndForEverySplit) {
  constexpr std::size_t kLength = 131;
  State expected = RandomState(kLength);
  Update(expected, 0, kLength, Instructions::kScalar);
  for (const Instructions instructions : Available()) {
    for (std::size_t split = 0; split <= kLength; ++split) {
      State state = RandomState(kLength);
      Update(state, 0, split, instructions);
      Update(state, split, kLength, instructions);
      ASSERT_EQ(state, expected) << "split at " << split;
    }
  }
}

TEST(AdamWKernel, TouchesNothingBehindItsLength) {
  for (const Instructions instructions : Available()) {
    State state = RandomState(40);
    const State before = state;
    Update(state, 0, 23, instructions);
    for (std::size_t i = 23; i < 40; ++i) EXPECT_EQ(state.p[i], before.p[i]);
  }
}

TEST(SumOfSquares, HasTheSameBitsOnEveryInstructionSet) {
  Rng rng(9);
  std::vector<float> values;
  for (int i = 0; i < 10'007; ++i) values.push_back(static_cast<float>(rng.Uniform() - 0.5));
  const double expected = SumOfSquares(values, Instructions::kScalar);
  for (const Instructions instructions : Available()) {
    EXPECT_EQ(SumOfSquares(values, instructions), expected);
  }
  long double exact = 0;
  for (const float x : values) exact += static_cast<long double>(x) * static_cast<long double>(x);
  EXPECT_NEAR(expected, static_cast<double>(exact), 1e-12 * expected);
}

struct Problem {
  explicit Problem(const AdamWOptions& options) {
    parameter = &model.AddUnit("u").Add("p", {37});
    MUSTER_CHECK(model.Materialize().has_value());
    optimizer.emplace(*AdamW::Create(model, options));
    Rng rng(3);
    for (int i = 0; i < 37; ++i) {
      parameter->value.mutable_data_ptr<float>()[i] = static_cast<float>(rng.Uniform() - 0.5);
    }
  }
  void SetGradient(int step) {
    for (int i = 0; i < 37; ++i) {
      parameter->gradient.mutable_data_ptr<float>()[i] = std::sin(0.3F * i + step);
    }
  }
  FlatModel model;
  Parameter* parameter = nullptr;
  std::optional<AdamW> optimizer;
};

// The formula of the paper in fp64.
struct Reference {
  double p = 0, m = 0, v = 0;
  void Step(double g, double lr, const AdamWOptions& o, int t) {
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(o.beta1, t));
    const double v_hat = v / (1 - std::pow(o.beta2, t));
    p -= lr * (m_hat / (std::sqrt(v_hat) + o.epsilon) + o.weight_decay * p);
  }
};

TEST(AdamW, FollowsTheFormulaInFp64) {
  const AdamWOptions options{.weight_decay = 0.05};
  Problem problem(options);
  std::vector<Reference> reference(37);
  const float* values = problem.parameter->value.const_data_ptr<float>();
  for (int i = 0; i < 37; ++i) reference[i].p = values[i];
  for (int step = 1; step <= 50; ++step) {
    problem.SetGradient(step);
    ASSERT_TRUE(problem.optimizer->Step(1e-3));
    for (int i = 0; i < 37; ++i) {
      const float g = problem.parameter->gradient.const_data_ptr<float>()[i];
      reference[i].Step(g, 1e-3, options, step);
    }
  }
  // 50 updates of 1e-3, each rounded to fp32.
  for (int i = 0; i < 37; ++i) EXPECT_NEAR(values[i], reference[i].p, 2e-6) << i;
}

TEST(AdamW, ClipsToTheNormAndReturnsTheOneBefore) {
  Problem problem({.weight_decay = 0, .clip_norm = 0.5});
  Problem scaled({.weight_decay = 0});
  problem.SetGradient(1);
  scaled.SetGradient(1);
  const double norm = problem.parameter->gradient.to(at::kDouble).norm().item<double>();
  EXPECT_NEAR(problem.optimizer->Step(1e-3).value(), norm, 1e-12 * norm);
  scaled.parameter->gradient.mul_(static_cast<float>(0.5 / norm));
  ASSERT_TRUE(scaled.optimizer->Step(1e-3));
  EXPECT_TRUE(at::equal(problem.parameter->value, scaled.parameter->value));
}

TEST(AdamW, ChangesNothingForAGradientThatIsNoNumberOrTooLarge) {
  for (const double clip : {0.0, 0.5}) {
    for (const float bad : {NAN, INFINITY, 2e19F}) {
      Problem problem({.clip_norm = clip});
      problem.SetGradient(1);
      ASSERT_TRUE(problem.optimizer->Step(1e-3));
      const at::Tensor before = problem.parameter->value.clone();
      problem.SetGradient(2);
      problem.parameter->gradient.mutable_data_ptr<float>()[20] = bad;
      const auto norm = problem.optimizer->Step(1e-3);
      if (std::isfinite(bad) && clip > 0) {
        EXPECT_TRUE(norm);  // scaled down before it is squared
        continue;
      }
      ASSERT_FALSE(norm) << bad;
      EXPECT_TRUE(at::equal(problem.parameter->value, before));
      EXPECT_EQ(problem.optimizer->steps(), 1U);
      for (const float moment : problem.optimizer->Moment2(0)) EXPECT_TRUE(std::isfinite(moment));
    }
  }
}

TEST(AdamW, RefusesSettingsThatMakeNoSense) {
  FlatModel model;
  model.AddUnit("u").Add("p", {1});
  ASSERT_TRUE(model.Materialize());
  EXPECT_FALSE(AdamW::Create(model, {.beta1 = 1}));
  EXPECT_FALSE(AdamW::Create(model, {.epsilon = 0}));
  EXPECT_FALSE(AdamW::Create(model, {.weight_decay = -1}));
  EXPECT_FALSE(AdamW::Create(model, {.clip_norm = NAN}));
  EXPECT_FALSE(AdamW::Create(model, {.clip_norm = INFINITY}));
  EXPECT_FALSE(AdamW::Create(model, {.weight_decay = INFINITY}));
}

}  // namespace
}  // namespace muster::train
