#pragma once
// The differentiable operations that recipes are written in. They differ from torch's own in one
// thing: weight gradients go straight into the model's flat gradient buffers (overwritten by the
// first use in a pass, added by later ones), so nothing is zeroed, accumulated or copied, and the
// parameter's unit learns that they are there. Everything else a recipe needs, it takes from ATen;
// gradients of parameters used there arrive through autograd.
//
// Shapes are in the names: B batch, T tokens, C channels, H heads, D channels of a head, K classes.
// fp32, contiguous, on the training thread. Under no-grad they compute the value only.

#include <ATen/core/Tensor.h>

#include "train/flat.h"

namespace muster::train::nn {

/// x_…I · weight_OIᵀ + bias_O. Leading dimensions of x are kept.
at::Tensor Linear(const at::Tensor& x, Parameter& weight_OI, Parameter& bias_O);

/// Normalises the last dimension, then scales and shifts (Ba et al., 2016).
at::Tensor LayerNorm(const at::Tensor& x, Parameter& gain_C, Parameter& bias_C);

/// x · Φ(x), the exact form (Hendrycks & Gimpel, 2016).
at::Tensor Gelu(const at::Tensor& x);

/// Bidirectional softmax(q kᵀ / √D) v for every head; qkv_BT3C holds q, k and v behind one another,
/// each as H heads of D = C / H channels. Returns [B, T, C].
at::Tensor SelfAttention(const at::Tensor& qkv_BT3C, std::int64_t heads);

/// A loss as what it is made of, because averages of averages are wrong: Σ over samples, and how
/// many.
struct LossSum {
  at::Tensor sum;    ///< fp64 scalar with a graph behind it
  double count = 0;  ///< samples, or the sum of their weights
};

/// −log softmax(logits)[label] summed over the first `valid` rows, targets smoothed towards uniform
/// by `smoothing` (Szegedy et al., 2016). Labels are int64 in [0, K).
LossSum CrossEntropy(const at::Tensor& logits_BK, const at::Tensor& labels_B, std::int64_t valid,
                     double smoothing = 0);

}  // namespace muster::train::nn
