#pragma once
// What rank 0 tells people and the run folder: a line every so many steps on stdout, flushed at
// once, and eval.jsonl (docs/formats/run-folder.md). Other ranks say nothing. Training thread.

#include <cstdint>

#include "base/result.h"
#include "train/task.h"
#include "train/worker.h"

namespace muster::train {

struct TrainerOptions;

class Report {
 public:
  explicit Report(Worker& worker) : worker_(&worker) {}

  void Started(std::uint64_t step, std::int64_t parameters, const TrainerOptions& options);
  void Stepped(std::uint64_t step, double loss, double rate, const TrainerOptions& options);
  /// Prints the score and appends it to the run folder, when there is one.
  Status Evaluated(std::uint64_t step, const Score& score);

 private:
  Worker* worker_;
  Instant since_;
  std::uint64_t since_step_ = 0;
};

}  // namespace muster::train
