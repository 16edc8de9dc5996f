#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include "train/nn/node.h"
#include "train/nn/ops.h"

namespace muster::train::nn {
namespace {

struct Heads {
  at::Tensor q_BHTD, k_BHTD, v_BHTD;
};

Heads Split(const at::Tensor& qkv_BT3C, std::int64_t heads) {
  const auto parts_BT3HD = qkv_BT3C.view({qkv_BT3C.size(0), qkv_BT3C.size(1), 3, heads, -1});
  const auto part = [&](std::int64_t i) { return parts_BT3HD.select(2, i).transpose(1, 2); };
  return {part(0), part(1), part(2)};
}

class AttentionBackward final : public UnaryNode {
 public:
  AttentionBackward(at::Tensor qkv, std::int64_t heads, at::Tensor out, at::Tensor logsumexp)
      : qkv_BT3C_(std::move(qkv)),
        heads_(heads),
        out_BHTD_(std::move(out)),
        logsumexp_(std::move(logsumexp)) {}
  std::string name() const override { return "muster::SelfAttention"; }
  void release_variables() override {
    qkv_BT3C_.reset();
    out_BHTD_.reset();
    logsumexp_.reset();
  }

 private:
  at::Tensor Backward(const at::Tensor& gradient_BTC) override {
    const auto [q, k, v] = Split(qkv_BT3C_, heads_);
    const auto sizes = gradient_BTC.sizes();
    const auto gradient_BHTD = gradient_BTC.view({sizes[0], sizes[1], heads_, -1}).transpose(1, 2);
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        gradient_BHTD, q, k, v, out_BHTD_, logsumexp_, 0.0, false);
    auto result = at::empty_like(qkv_BT3C_);
    auto parts = Split(result, heads_);
    parts.q_BHTD.copy_(dq);
    parts.k_BHTD.copy_(dk);
    parts.v_BHTD.copy_(dv);
    return result;
  }

  at::Tensor qkv_BT3C_;
  std::int64_t heads_;
  at::Tensor out_BHTD_;
  at::Tensor logsumexp_;
};

}  // namespace

at::Tensor SelfAttention(const at::Tensor& qkv_BT3C, std::int64_t heads) {
  at::Tensor y_BTC;
  at::Tensor out_BHTD;
  at::Tensor logsumexp;
  {
    const NoDispatchToAutograd guard;
    const auto [q, k, v] = Split(qkv_BT3C, heads);
    std::tie(out_BHTD, logsumexp) =
        at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, false);
    y_BTC = out_BHTD.transpose(1, 2).reshape({qkv_BT3C.size(0), qkv_BT3C.size(1), -1});
  }
  if (!Recording()) return y_BTC;
  Record(
      c10::make_intrusive<AttentionBackward>(qkv_BT3C.variable_data(), heads, out_BHTD, logsumexp),
      qkv_BT3C, y_BTC);
  return y_BTC;
}

}  // namespace muster::train::nn
