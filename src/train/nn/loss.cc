#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <span>

#include "train/nn/node.h"
#include "train/nn/ops.h"

namespace muster::train::nn {
namespace {

struct Row {
  std::span<const float> logits;
  std::int64_t label = 0;
};

// The loss of one row; `gradient` becomes softmax(logits) − target. In fp64: ten numbers a sample
// cost nothing, and the sum over samples keeps its last digits.
double RowLoss(const Row& row, double smoothing, std::span<float> gradient) {
  double highest = row.logits[0];
  for (const float logit : row.logits) highest = std::max<double>(highest, logit);
  double total = 0;
  for (const float logit : row.logits) total += std::exp(logit - highest);
  const double log_total = highest + std::log(total);
  const double spread = smoothing / static_cast<double>(row.logits.size());
  double loss = 0;
  for (std::size_t k = 0; k < row.logits.size(); ++k) {
    const double target = spread + (static_cast<std::int64_t>(k) == row.label ? 1 - smoothing : 0);
    const double log_probability = row.logits[k] - log_total;
    loss -= target * log_probability;
    gradient[k] = static_cast<float>(std::exp(log_probability) - target);
  }
  return loss;
}

class CrossEntropyBackward final : public UnaryNode {
 public:
  explicit CrossEntropyBackward(at::Tensor gradient_BK) : gradient_BK_(std::move(gradient_BK)) {}
  std::string name() const override { return "muster::CrossEntropy"; }
  void release_variables() override { gradient_BK_.reset(); }

 private:
  at::Tensor Backward(const at::Tensor& gradient) override {
    return gradient_BK_.mul(gradient.item<double>());
  }
  at::Tensor gradient_BK_;
};

}  // namespace

LossSum CrossEntropy(const at::Tensor& logits_BK, const at::Tensor& labels_B, std::int64_t valid,
                     double smoothing) {
  at::Tensor sum;
  at::Tensor gradient_BK;
  {
    const NoDispatchToAutograd guard;
    const at::Tensor logits = logits_BK.contiguous();
    const auto classes = static_cast<std::size_t>(logits.size(1));
    gradient_BK = at::zeros(logits.sizes());
    double total = 0;
    for (std::int64_t b = 0; b < valid; ++b) {
      const auto at = static_cast<std::size_t>(b) * classes;
      const Row row{.logits = {logits.const_data_ptr<float>() + at, classes},
                    .label = labels_B.const_data_ptr<std::int64_t>()[b]};
      MUSTER_CHECK(row.label >= 0 && row.label < logits.size(1));
      total += RowLoss(row, smoothing, {gradient_BK.mutable_data_ptr<float>() + at, classes});
    }
    sum = at::empty({}, at::kDouble);
    *sum.mutable_data_ptr<double>() = total;
  }
  if (Recording()) Record(c10::make_intrusive<CrossEntropyBackward>(gradient_BK), logits_BK, sum);
  return {.sum = sum, .count = static_cast<double>(valid)};
}

}  // namespace muster::train::nn
