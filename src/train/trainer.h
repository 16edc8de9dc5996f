#pragma once
// The training loop: order of samples, passes, gradients, optimizer, checkpoints, evaluation and
// the heartbeat, for any recipe. What a worker prints for people is here too, on rank 0:
//
//   step 50 loss=1.2345 lr=0.00199 2412 img/s
//   test accuracy=0.8450 loss=0.4321 samples=10000 step=600
//
// Every rank of a job runs it with equal options. Training thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "data/loader.h"
#include "train/checkpoints.h"
#include "train/optim/adamw.h"
#include "train/optim/schedule.h"
#include "train/strategy_data_parallel.h"
#include "train/task.h"
#include "train/worker.h"

namespace muster::train {

enum class Mode {
  kCanonical,  ///< same bits for 1, 2, 4, 8 ranks
  kFast,       ///< one pass a rank
};
Result<Mode> ParseMode(std::string_view name);

/// Whether reductions run beside backward (strategy_data_parallel.h). The same bits either way.
enum class OverlapChoice {
  kAuto,  ///< where there are two cores a rank; with one it gains nothing (bench/README.md)
  kOn,
  kOff,
};
Result<OverlapChoice> ParseOverlap(std::string_view name);  ///< "auto", "on", "off"

inline constexpr std::uint32_t kVirtualShards = 8;

struct TrainerOptions {
  std::uint64_t steps = 600;
  std::uint32_t global_batch = 128;
  Mode mode = Mode::kCanonical;
  OverlapChoice overlap = OverlapChoice::kAuto;
  std::uint64_t seed = 0;
  data::OrderMode order = data::OrderMode::kFull;
  data::ImageShape image;                     ///< of every sample; all zero: of row 0
  data::Colour colour = data::Colour::kKeep;  ///< data::LoaderOptions
  unsigned decode_threads = 1;
  Schedule schedule;  ///< its `total` is `steps`
  AdamWOptions optimizer;
  CheckpointOptions checkpoint;
  std::uint64_t eval_every = 0;  ///< steps; 0: at the end only
  std::uint64_t log_every = 50;
};

/// Whether world, batch, mode and schedule fit together; Invalid names what does not.
Status CheckFit(const TrainerOptions& options, std::uint32_t world);

struct Splits {
  std::shared_ptr<const data::Dataset> train;
  std::shared_ptr<const data::Dataset> test;  ///< null: no evaluation
  std::string test_name = "test";             ///< its name, as it is printed
};

struct Outcome {
  std::uint64_t step = 0;
  std::uint64_t first_step = 0;  ///< finished steps at the start; above 0 after a resume
  double last_loss = 0;          ///< 0 when no step was left to do
  std::optional<Score> score;
};

/// Trains to the end. Invalid when world, batch and mode do not fit together; Invalid too when the
/// loss or the gradient stops being finite (nothing of that step is applied or saved). What torch
/// or the task throw comes back as an error.
Result<Outcome> Train(Task& task, Worker& worker, const Splits& splits,
                      const TrainerOptions& options);

}  // namespace muster::train
