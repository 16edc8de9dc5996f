#pragma once
// The run's checkpoints: what of a training state goes into one, and how a run finds its way back.
// Rank 0 takes the folder for its run (checkpoint/lock.h) and holds it as long as this object
// lives, looks for the newest committed checkpoint and tells the others; every rank loads all of
// it, since data parallel replicates the state; a save is split evenly, so that each rank writes
// its part. A checkpoint that any rank finds damaged is passed over for the next older one, and
// stays where it is.
//
// Every method is a collective: all ranks call it at the same step. Training thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/checkpoint/lock.h"
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

  /// Loads the newest intact checkpoint into model and optimizer; nothing when there is none at
  /// all. Errors: Precondition for a checkpoint of another model, configuration, shape, seed or
  /// version, and nothing was changed; Conflict when another run has the folder; DataLoss when
  /// there are checkpoints and none is intact; whatever keeps the folder from being written, before
  /// training.
  Result<std::optional<Position>> Resume(FlatModel& model, AdamW& optimizer);
  /// Instead of Resume, when a rank has a newer state in its memory: rank 0 takes the folder unless
  /// it has it already, and all ranks know what `source` found damaged.
  Status Join(Rank source);
  Status Save(const Position& position, const FlatModel& model, const AdamW& optimizer);

  /// Whether `step` of `total` is followed by a save: every N steps and at the end.
  bool Due(std::uint64_t step, std::uint64_t total) const;

 private:
  Status AgreeOnRun();
  Result<std::vector<std::uint64_t>> TakeFolder();
  Result<std::optional<std::uint64_t>> AgreeOnStep(
      const Result<std::vector<std::uint64_t>>& candidates);
  Result<std::optional<Position>> Try(std::uint64_t step, FlatModel& model, AdamW& optimizer);
  Result<Position> Load(std::uint64_t step, FlatModel& model, AdamW& optimizer);
  void WarnOfOtherBits(const checkpoint::Manifest& manifest) const;

  std::optional<checkpoint::FolderLock> lock_;  // rank 0's, from Resume on
  std::string run_;                             // part of temporary names, the same on every rank
  std::vector<std::uint64_t> damaged_;          // steps that were passed over
  std::string damage_;                          // what this rank saw of it, the newest
  Worker* worker_;
  CheckpointOptions options_;
  RunIdentity identity_;
};

/// Units one behind the other, padding included; groups param, exp_avg and exp_avg_sq.
checkpoint::FlatIndex IndexOf(const FlatModel& model);

}  // namespace muster::train
