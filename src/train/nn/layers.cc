#include "train/nn/layers.h"

#include <cmath>

#include "train/random.h"

namespace muster::train::nn {

LinearLayer AddLinear(Unit& unit, const std::string& name, std::int64_t inputs,
                      std::int64_t outputs) {
  return {.weight_OI = &unit.Add(name + ".weight", {outputs, inputs}),
          .bias_O = &unit.Add(name + ".bias", {outputs})};
}

void Initialize(const LinearLayer& layer, std::uint64_t seed) {
  const double bound = 1 / std::sqrt(static_cast<double>(layer.weight_OI->shape[1]));
  FillUniform(*layer.weight_OI, seed, bound);
  FillUniform(*layer.bias_O, seed, bound);
}

NormLayer AddNorm(Unit& unit, const std::string& name, std::int64_t channels) {
  return {.gain_C = &unit.Add(name + ".gain", {channels}),
          .bias_C = &unit.Add(name + ".bias", {channels})};
}

void Initialize(const NormLayer& layer) {
  std::fill_n(layer.gain_C->value.mutable_data_ptr<float>(), layer.gain_C->length, 1.0F);
  std::fill_n(layer.bias_C->value.mutable_data_ptr<float>(), layer.bias_C->length, 0.0F);
}

void FillUniform(Parameter& parameter, std::uint64_t seed, double bound) {
  Rng draws = InitialDraws(seed, parameter.name);
  auto* values = parameter.value.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < parameter.length; ++i) {
    values[i] = static_cast<float>((2 * draws.Uniform() - 1) * bound);
  }
}

}  // namespace muster::train::nn
