#pragma once
// What our autograd nodes share: how a result is tied to the node that computes its backward. Our
// nodes are plain autograd Nodes and not torch::autograd::Function, which costs several
// microseconds a call in boxing; a small model runs a hundred of them in a few milliseconds.

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <utility>

namespace muster::train::nn {

/// Below this guard operations compute without autograd's bookkeeping.
using NoDispatchToAutograd = at::AutoDispatchBelowADInplaceOrView;

inline bool Recording() { return at::GradMode::is_enabled(); }

/// Makes `node` compute the gradient of `result` and send its own to `input`. Also for inputs that
/// need no gradient: the node still has weight gradients to write.
inline void Record(const c10::intrusive_ptr<torch::autograd::Node>& node, const at::Tensor& input,
                   const at::Tensor& result) {
  node->set_next_edges(torch::autograd::collect_next_edges(input));
  torch::autograd::set_history(result, node);
}

/// A node with one input and one output; Backward may return an undefined tensor when nobody
/// wants it.
class UnaryNode : public torch::autograd::Node {
 public:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) final {
    const NoDispatchToAutograd guard;
    torch::autograd::variable_list result(1);
    if (gradients[0].defined()) result[0] = Backward(gradients[0].contiguous());
    return result;
  }

 protected:
  virtual at::Tensor Backward(const at::Tensor& gradient) = 0;
  bool InputWanted() const { return next_edge(0).is_valid(); }
};

}  // namespace muster::train::nn
