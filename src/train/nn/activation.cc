#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>

#include "train/nn/node.h"
#include "train/nn/ops.h"

namespace muster::train::nn {
namespace {

class GeluBackward final : public UnaryNode {
 public:
  explicit GeluBackward(at::Tensor x) : x_(std::move(x)) {}
  std::string name() const override { return "muster::Gelu"; }
  void release_variables() override { x_.reset(); }

 private:
  at::Tensor Backward(const at::Tensor& gradient) override {
    return at::gelu_backward(gradient, x_);
  }
  at::Tensor x_;
};

}  // namespace

at::Tensor Gelu(const at::Tensor& x) {
  at::Tensor y;
  {
    const NoDispatchToAutograd guard;
    y = at::gelu(x);
  }
  if (Recording()) Record(c10::make_intrusive<GeluBackward>(x.variable_data()), x, y);
  return y;
}

}  // namespace muster::train::nn
