#pragma once
// The run's checkpoints: what of a training state goes into one, and how a run finds its way back.
// Rank 0 looks for the newest committed checkpoint and tells the others; every rank loads all of
// it, since data parallel replicates the state; a save is split evenly, so that each rank writes
// its part.
//
// Every method is a collective: all ranks call it at the same step. Training thread.

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "train/checkpoint/manifest.h"
#include "train/flat.h"
#include "train/optim/adamw.h"
#include "train/worker.h"

namespace muster::train {

struct CheckpointOptions {
  std::string folder;           ///< empty: nothing is saved or looked for
  std::uint64_t every = 0;      ///< steps; 0: at the end only
  std::uint32_t keep_last = 3;  ///< 0 keeps all
};

/// What of a run is the same at every step.
struct RunIdentity {
  std::string model;
  std::string config_json;
  std::uint64_t seed = 0;
  checkpoint::Canonical canonical;
};

struct Position {
  std::uint64_t step = 0;
  std::string loader_state;
};

class Checkpoints {
 public:
  Checkpoints(Worker& worker, const CheckpointOptions& options, const RunIdentity& identity);

  /// Loads the newest checkpoint into model and optimizer; nothing when there is none. A checkpoint
  /// of another model, shape or version is an error, and nothing was changed.
  Result<std::optional<Position>> Resume(FlatModel& model, AdamW& optimizer);
  Status Save(const Position& position, const FlatModel& model, const AdamW& optimizer);

  /// Whether `step` of `total` is followed by a save: every N steps and at the end.
  bool Due(std::uint64_t step, std::uint64_t total) const;

 private:
  Result<std::optional<std::uint64_t>> AgreeOnStep();
  Result<Position> Load(std::uint64_t step, FlatModel& model, AdamW& optimizer);
  void WarnOfOtherBits(const checkpoint::Manifest& manifest) const;

  Worker* worker_;
  CheckpointOptions options_;
  RunIdentity identity_;
};

/// Units one behind the other, padding included; groups param, exp_avg and exp_avg_sq.
checkpoint::FlatIndex IndexOf(const FlatModel& model);

}  // namespace muster::train
