#include "train/optim/adamw.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "train/sums.h"

namespace muster::train {
namespace {

constexpr std::size_t kAlignBytes = kAlignFloats * sizeof(float);
// An infinite second moment stays so for good and freezes its parameter without a sign: the squares
// of what reaches the kernels have to be numbers in fp32.
constexpr double kMostNorm = 1e19;

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<float, Free>;

Buffer Zeroed(std::size_t length) {
  void* memory = std::aligned_alloc(kAlignBytes, length * sizeof(float));
  if (memory != nullptr) std::memset(memory, 0, length * sizeof(float));
  return Buffer(static_cast<float*>(memory));
}

Status Check(const char* name, double value, bool fine) {
  if (fine && std::isfinite(value)) return Ok();
  return Error(Code::kInvalid,
               "the optimizer's " + std::string(name) + " cannot be " + std::to_string(value));
}

}  // namespace

struct AdamW::Memory {
  std::vector<Buffer> moment1;
  std::vector<Buffer> moment2;
};

AdamW::AdamW(const FlatModel& model, const AdamWOptions& options)
    : model_(&model), options_(options), memory_(std::make_unique<Memory>()) {}
AdamW::AdamW(AdamW&&) noexcept = default;
AdamW& AdamW::operator=(AdamW&&) noexcept = default;
AdamW::~AdamW() = default;

Result<AdamW> AdamW::Create(const FlatModel& model, const AdamWOptions& options) {
  MUSTER_TRY(Check("beta1", options.beta1, options.beta1 >= 0 && options.beta1 < 1));
  MUSTER_TRY(Check("beta2", options.beta2, options.beta2 >= 0 && options.beta2 < 1));
  MUSTER_TRY(Check("epsilon", options.epsilon, options.epsilon > 0));
  MUSTER_TRY(Check("weight decay", options.weight_decay, options.weight_decay >= 0));
  MUSTER_TRY(Check("clipping norm", options.clip_norm, options.clip_norm >= 0));
  AdamW optimizer(model, options);
  for (const auto& unit : model.units()) {
    for (auto* moments : {&optimizer.memory_->moment1, &optimizer.memory_->moment2}) {
      if (!moments->emplace_back(Zeroed(unit->values().size()))) {
        return Error(Code::kExhausted, "no memory for the optimizer state of " + unit->name());
      }
    }
  }
  return optimizer;
}

void AdamW::Reset() {
  for (std::size_t i = 0; i < model_->units().size(); ++i) {
    std::ranges::fill(Moment1(i), 0.0F);
    std::ranges::fill(Moment2(i), 0.0F);
  }
  steps_ = 0;
}

std::span<float> AdamW::Moment1(std::size_t unit) const {
  return {memory_->moment1[unit].get(), model_->units()[unit]->values().size()};
}

std::span<float> AdamW::Moment2(std::size_t unit) const {
  return {memory_->moment2[unit].get(), model_->units()[unit]->values().size()};
}

double AdamW::GradientNorm() const {
  std::vector<double> sums;
  for (const auto& unit : model_->units()) {
    for (const auto& parameter : unit->parameters()) {
      sums.push_back(
          SumOfSquares(unit->gradients().subspan(static_cast<std::size_t>(parameter->offset),
                                                 static_cast<std::size_t>(parameter->length)),
                       instructions_));
    }
  }
  return std::sqrt(TreeSum(sums));
}

Result<double> AdamW::Step(double learning_rate) {
  const double norm = GradientNorm();
  const bool clipped = options_.clip_norm > 0 && norm > options_.clip_norm;
  if (!std::isfinite(norm) || (clipped ? options_.clip_norm : norm) > kMostNorm) {
    return Error(Code::kInvalid, "the norm of the gradient is " + std::to_string(norm));
  }
  ++steps_;
  const auto t = static_cast<double>(steps_);
  const double bias1 = 1 - std::pow(options_.beta1, t);
  const double bias2 = 1 - std::pow(options_.beta2, t);
  const AdamWStep step{
      .gradient_scale = clipped ? static_cast<float>(options_.clip_norm / norm) : 1.0F,
      .keep = static_cast<float>(1 - learning_rate * options_.weight_decay),
      .one_minus_beta1 = static_cast<float>(1 - options_.beta1),
      .beta2 = static_cast<float>(options_.beta2),
      .one_minus_beta2 = static_cast<float>(1 - options_.beta2),
      .step_size = static_cast<float>(learning_rate / bias1),
      .inverse_root_bias2 = static_cast<float>(1 / std::sqrt(bias2)),
      .epsilon = static_cast<float>(options_.epsilon),
  };
  for (std::size_t i = 0; i < model_->units().size(); ++i) {
    const Unit& unit = *model_->units()[i];
    UpdateAdamW(step,
                {.parameter = unit.values().data(),
                 .gradient = unit.gradients().data(),
                 .moment1 = Moment1(i).data(),
                 .moment2 = Moment2(i).data(),
                 .length = unit.values().size()},
                instructions_);
  }
  return norm;
}

}  // namespace muster::train
