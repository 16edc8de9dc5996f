#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/sum.h>

#include "train/nn/node.h"
#include "train/nn/ops.h"

namespace muster::train::nn {
namespace {

at::Tensor Rows(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

// parameter's gradient += or = value, and tells its unit.
void Deliver(Parameter& parameter, const at::Tensor& value) {
  if (parameter.Beta() == 0) {
    parameter.gradient.copy_(value);
  } else {
    parameter.gradient.add_(value);
  }
  parameter.Written();
}

class LinearBackward final : public UnaryNode {
 public:
  LinearBackward(at::Tensor x_RI, Parameter& weight, Parameter& bias)
      : x_RI_(std::move(x_RI)), weight_(&weight), bias_(&bias) {}
  std::string name() const override { return "muster::Linear"; }
  void release_variables() override { x_RI_.reset(); }

 private:
  at::Tensor Backward(const at::Tensor& gradient) override {
    const at::Tensor dy_RO = Rows(gradient);
    at::Tensor dx;
    if (InputWanted()) {
      auto sizes = gradient.sizes().vec();
      sizes.back() = x_RI_.size(1);
      dx = at::mm(dy_RO, weight_->value).view(sizes);
    }
    at::addmm_out(weight_->gradient, weight_->gradient, dy_RO.t(), x_RI_, weight_->Beta(), 1);
    weight_->Written();
    if (bias_->Beta() == 0) {
      at::sum_out(bias_->gradient, dy_RO, 0);
      bias_->Written();
    } else {
      Deliver(*bias_, dy_RO.sum(0));
    }
    return dx;
  }

  at::Tensor x_RI_;
  Parameter* weight_;
  Parameter* bias_;
};

class LayerNormBackward final : public UnaryNode {
 public:
  LayerNormBackward(at::Tensor x, at::Tensor mean, at::Tensor reciprocal, Parameter& gain,
                    Parameter& bias)
      : x_(std::move(x)),
        mean_(std::move(mean)),
        reciprocal_(std::move(reciprocal)),
        gain_(&gain),
        bias_(&bias) {}
  std::string name() const override { return "muster::LayerNorm"; }
  void release_variables() override {
    x_.reset();
    mean_.reset();
    reciprocal_.reset();
  }

 private:
  at::Tensor Backward(const at::Tensor& gradient) override {
    auto [dx, dgain, dbias] =
        at::native_layer_norm_backward(gradient, x_, gain_->shape, mean_, reciprocal_, gain_->value,
                                       bias_->value, {InputWanted(), true, true});
    Deliver(*gain_, dgain);
    Deliver(*bias_, dbias);
    return dx;
  }

  at::Tensor x_;
  at::Tensor mean_;
  at::Tensor reciprocal_;
  Parameter* gain_;
  Parameter* bias_;
};

constexpr double kNormEpsilon = 1e-5;

}  // namespace

at::Tensor Linear(const at::Tensor& x, Parameter& weight_OI, Parameter& bias_O) {
  at::Tensor y;
  at::Tensor x_RI;
  {
    const NoDispatchToAutograd guard;
    x_RI = Rows(x.variable_data());
    auto sizes = x.sizes().vec();
    sizes.back() = weight_OI.shape[0];
    y = at::addmm(bias_O.value, x_RI, weight_OI.value.t()).view(sizes);
  }
  if (!Recording()) return y;
  weight_OI.CountUse();
  bias_O.CountUse();
  Record(c10::make_intrusive<LinearBackward>(std::move(x_RI), weight_OI, bias_O), x, y);
  return y;
}

at::Tensor LayerNorm(const at::Tensor& x, Parameter& gain_C, Parameter& bias_C) {
  at::Tensor y;
  at::Tensor mean;
  at::Tensor reciprocal;
  {
    const NoDispatchToAutograd guard;
    std::tie(y, mean, reciprocal) =
        at::native_layer_norm(x, gain_C.shape, gain_C.value, bias_C.value, kNormEpsilon);
  }
  if (!Recording()) return y;
  gain_C.CountUse();
  bias_C.CountUse();
  Record(
      c10::make_intrusive<LayerNormBackward>(x.variable_data(), mean, reciprocal, gain_C, bias_C),
      x, y);
  return y;
}

}  // namespace muster::train::nn
