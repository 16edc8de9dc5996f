#pragma once
// Operations bundled with their parameters, so that a recipe declares a layer in one line and calls
// it in another. A layer borrows its parameters from the model. Training thread.

#include <cstdint>
#include <string>

#include "train/flat.h"
#include "train/nn/ops.h"

namespace muster::train::nn {

struct LinearLayer {
  Parameter* weight_OI = nullptr;
  Parameter* bias_O = nullptr;
  at::Tensor operator()(const at::Tensor& x) const { return Linear(x, *weight_OI, *bias_O); }
};
LinearLayer AddLinear(Unit& unit, const std::string& name, std::int64_t inputs,
                      std::int64_t outputs);
/// Uniform in ±1/√inputs, weight and bias: torch.nn.Linear's default.
void Initialize(const LinearLayer& layer, std::uint64_t seed);

struct NormLayer {
  Parameter* gain_C = nullptr;
  Parameter* bias_C = nullptr;
  at::Tensor operator()(const at::Tensor& x) const { return LayerNorm(x, *gain_C, *bias_C); }
};
NormLayer AddNorm(Unit& unit, const std::string& name, std::int64_t channels);
/// Gain 1, bias 0.
void Initialize(const NormLayer& layer);

/// Uniform in ±bound, keyed by (seed, the parameter's name).
void FillUniform(Parameter& parameter, std::uint64_t seed, double bound);

}  // namespace muster::train::nn
