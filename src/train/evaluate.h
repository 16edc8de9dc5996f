#pragma once
// Validation on a held-out split, shared by the ranks: the split goes through the loader in order,
// padded, so that every row counts once whatever the number of ranks. Sums are kept for each
// virtual shard, so the loss has the same bits for 1, 2, 4 and 8 ranks. A collective.

#include <memory>

#include "base/result.h"
#include "train/task.h"
#include "train/worker.h"

namespace muster::train {

struct EvaluateOptions {
  std::uint32_t virtual_shards = 8;  ///< as in training; 0: one part a rank
  std::uint32_t batch = 1024;        ///< rows of all ranks together
  data::ImageShape image;
  data::Colour colour = data::Colour::kKeep;  ///< as in training
  std::uint32_t classes = 0;                  ///< labels must be below it; 0: not checked
  unsigned decode_threads = 1;
};

Result<Score> Evaluate(Task& task, Worker& worker, std::shared_ptr<const data::Dataset> dataset,
                       const EvaluateOptions& options);

}  // namespace muster::train
