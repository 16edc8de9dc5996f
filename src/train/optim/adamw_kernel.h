#pragma once
// The arithmetic of one AdamW update (Loshchilov & Hutter, "Decoupled Weight Decay Regularization",
// 2019) over flat fp32 memory. Every element is computed alone with the same sequence of correctly
// rounded operations (explicit FMA, IEEE square root and division), so the result has the same bits
// for any partition of the buffer and on any instruction set; a test splits at every offset.
//
//   g' = s·g    m = m + (1 − β₁)(g' − m)    v = β₂·v + (1 − β₂)·g'²
//   p = (1 − lr·λ)·p − lr/(1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε)
//
// Any thread.

#include <cstddef>
#include <span>

namespace muster::train {

/// The numbers of one step, rounded to fp32 once.
struct AdamWStep {
  float gradient_scale = 1;  ///< s: below 1 when the gradient is clipped
  float keep = 1;            ///< 1 − lr·λ
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float step_size = 0;           ///< lr / (1 − β₁ᵗ)
  float inverse_root_bias2 = 1;  ///< 1 / √(1 − β₂ᵗ)
  float epsilon = 0;
};

/// Four buffers of equal length; `gradient` is only read.
struct AdamWBuffers {
  float* parameter = nullptr;
  const float* gradient = nullptr;
  float* moment1 = nullptr;
  float* moment2 = nullptr;
  std::size_t length = 0;
};

enum class Instructions { kScalar, kAvx2, kAvx512 };

/// The widest that this processor has.
Instructions BestInstructions();
/// `instructions` must be available on this processor.
void UpdateAdamW(const AdamWStep& step, const AdamWBuffers& buffers, Instructions instructions);

/// Σ x² in fp64: blocks of 4096 floats, eight lanes in a block, and a fixed tree over the blocks.
/// Same bits on any instruction set.
double SumOfSquares(std::span<const float> values, Instructions instructions);

}  // namespace muster::train
