#pragma once
// The command line of the vit recipe: its defaults are the demo (Fashion-MNIST, two minutes on two
// cores), its sizes are flags, so that the model of 4.8 million parameters is the same code.

#include <cstdint>
#include <string>

#include "spec/env.h"
#include "train/trainer.h"
#include "vit/vit.h"

namespace CLI {
class App;
}

namespace muster::recipes {

struct VitFlags {
  std::string data;  ///< folder of a packed dataset with the split train, or of one unnamed split
  std::string eval_split;  ///< empty: test, or validation where there is no test
  std::string mode = "canonical";
  std::string order = "full";
  std::string schedule = "cosine";
  std::string overlap = "auto";
  double learning_rate = 2e-3;
  double warm_up = 0.05;       ///< fraction of the steps
  std::uint32_t channels = 0;  ///< 1, 3; 0: those of the first image, and no later one has more
  VitOptions model;
  train::TrainerOptions trainer;
};

/// Adds the subcommand `vit`; parsing fills `flags`, which must outlive `app`.
void AddVit(CLI::App& app, VitFlags& flags);

struct VitRun {
  Vit task;
  train::Splits splits;
  train::TrainerOptions options;
};

/// Opens the data and fits the model to it. What the host says about data and checkpoints counts
/// where a flag is absent. Invalid, before anything else is done, for a flag out of its range
/// (named with its value) and for an evaluation split that the model cannot be scored on: other
/// classes, another size, no labels. Every image is looked at until this rank has finished a step
/// of the run: a refusal stands, however often the worker is started.
Result<VitRun> PrepareVit(const VitFlags& flags, const train::Worker& worker);

}  // namespace muster::recipes
