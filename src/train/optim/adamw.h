#pragma once
// AdamW over a model's flat buffers: one pass over parameters, gradients and both moments, with the
// clipping factor applied inside. The gradient norm is a fp64 sum of fixed blocks of each
// parameter, in a fixed tree, so neither ranks nor buckets show in it (kernels: adamw_kernel.h).
//
// Owned by the training thread. Moments are allocated here, 8 bytes a parameter.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "train/flat.h"
#include "train/optim/adamw_kernel.h"

namespace muster::train {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.05;  ///< decoupled, on every parameter
  double clip_norm = 0;        ///< the gradient is scaled down to this norm; 0: never
};

class AdamW {
 public:
  /// The model must be materialized and outlive this.
  static Result<AdamW> Create(const FlatModel& model, const AdamWOptions& options);
  AdamW(AdamW&&) noexcept;
  AdamW& operator=(AdamW&&) noexcept;
  ~AdamW();

  /// One update of every parameter from the gradients in place. Returns the gradient's norm before
  /// clipping. Invalid when an element of the gradient is not finite, or so large that its square
  /// would fill the second moment with infinity: nothing was changed, and as the norm has the same
  /// bits on every rank, all of them stop.
  Result<double> Step(double learning_rate);

  /// As created: no step was made.
  void Reset();
  std::uint64_t steps() const { return steps_; }
  void RestoreSteps(std::uint64_t steps) { steps_ = steps; }
  /// First and second moment of a unit, laid out like its parameters.
  std::span<float> Moment1(std::size_t unit) const;
  std::span<float> Moment2(std::size_t unit) const;

 private:
  struct Memory;
  AdamW(const FlatModel& model, const AdamWOptions& options);
  double GradientNorm() const;

  const FlatModel* model_;
  AdamWOptions options_;
  Instructions instructions_ = BestInstructions();
  std::uint64_t steps_ = 0;
  std::unique_ptr<Memory> memory_;
};

}  // namespace muster::train
