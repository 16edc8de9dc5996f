#pragma once
// What a recipe gives to the trainer: a model over flat memory, its loss on a micro-shard, and what
// to count in validation. Everything else (order, ranks, gradients, optimizer, checkpoints) is the
// trainer's. Called on the training thread only; whatever is thrown out of any method becomes an
// error of Train.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "data/loader.h"
#include "train/flat.h"
#include "train/nn/ops.h"

namespace muster::train {

/// One micro-shard of pixels with its place in the run.
struct Samples {
  const data::MicroShard* shard = nullptr;
  data::ImageShape image;
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  ///< optimizer steps finished before this one
};

/// Counts of a part of the validation set; parts add up.
struct Score {
  double loss_sum = 0;
  std::uint64_t correct = 0;
  std::uint64_t count = 0;
};

class Task {
 public:
  virtual ~Task() = default;

  virtual std::string_view name() const = 0;  ///< "vit"; a checkpoint of another is refused
  /// A JSON object that describes the model, kept in checkpoints.
  virtual std::string ConfigJson() const = 0;

  /// Adds the units and parameters. Once, before anything below.
  virtual void Define(FlatModel& model) = 0;
  /// Sets the initial parameters from counter-based draws.
  virtual void Initialize(std::uint64_t seed) = 0;

  /// Forward with a graph: the loss summed over the valid samples, augmented by their keys.
  virtual nn::LossSum Loss(const Samples& samples) = 0;
  /// Forward without one, on samples as they are.
  virtual Score Evaluate(const Samples& samples) = 0;
};

}  // namespace muster::train
