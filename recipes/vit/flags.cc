#include "vit/flags.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "base/text.h"
#include "vit/ranges.h"
#include "vit/splits.h"

namespace muster::recipes {
namespace {

/// An option whose default is the value that is there.
template <typename T>
void Add(CLI::App& app, const char* flag, T& value, const char* about) {
  app.add_option(flag, value, about)->capture_default_str();
}

/// One whose value without it is found elsewhere; `about` says where.
template <typename T>
void AddFound(CLI::App& app, const char* flag, T& value, const char* about) {
  app.add_option(flag, value, about);
}

void AddRunFlags(CLI::App& app, VitFlags& flags) {
  auto& trainer = flags.trainer;
  AddFound(app, "--data", flags.data, "Folder of a packed dataset; default: the job's first data");
  Add(app, "--steps", trainer.steps, "Optimizer steps of the whole run");
  Add(app, "--batch", trainer.global_batch, "Samples of one step, those of all ranks together");
  AddFound(app, "--channels", flags.channels, "1: grey, 3: RGB; default: what all images have");
  Add(app, "--seed", trainer.seed, "Number that order, augmentation and first weights come from");
  Add(app, "--mode", flags.mode, "canonical (the same bits on 1, 2, 4 and 8 ranks) or fast");
  Add(app, "--overlap", flags.overlap,
      "Reduce gradients beside backward: on, off or auto (with two cores a rank)");
  Add(app, "--order", flags.order, "Order of the samples: sequential, shard, window or full");
  Add(app, "--decode-threads", trainer.decode_threads,
      "Threads of a rank that decode images; 0: decode between steps");
  Add(app, "--log-every", trainer.log_every, "Steps from one line of output to the next");
  Add(app, "--eval-every", trainer.eval_every,
      "Steps from one evaluation to the next; 0: only at the end");
  AddFound(app, "--eval-split", flags.eval_split,
           "Split to evaluate on; default: test, else validation, else none");
  AddFound(app, "--checkpoint-dir", trainer.checkpoint.folder,
           "Folder to save to and resume from; default: the job's, else nothing is saved");
  Add(app, "--checkpoint-every", trainer.checkpoint.every,
      "Steps from one checkpoint to the next; 0: the job's number, else only at the end");
  Add(app, "--keep", trainer.checkpoint.keep_last, "Newest checkpoints that are kept; 0: all");
}

void AddOptimizerFlags(CLI::App& app, VitFlags& flags) {
  auto& optimizer = flags.trainer.optimizer;
  Add(app, "--lr", flags.learning_rate, "Peak learning rate");
  Add(app, "--warm-up", flags.warm_up, "Part of the steps in which the rate rises, 0 to 1");
  Add(app, "--schedule", flags.schedule, "Learning rate after warm-up: constant, cosine or wsd");
  Add(app, "--weight-decay", optimizer.weight_decay,
      "Share of a weight taken off per step and unit of the learning rate");
  Add(app, "--beta1", optimizer.beta1, "Decay per step of AdamW's mean of gradients, below 1");
  Add(app, "--beta2", optimizer.beta2, "Decay per step of AdamW's mean of squares, below 1");
  Add(app, "--clip-norm", optimizer.clip_norm,
      "Longest gradient, as its L2 norm; longer ones are scaled down; 0: never");
}

void AddModelFlags(CLI::App& app, VitOptions& model) {
  Add(app, "--patch", model.patch, "Side of a square patch, in pixels");
  Add(app, "--width", model.width, "Channels of a token");
  Add(app, "--blocks", model.blocks, "Transformer blocks");
  Add(app, "--heads", model.heads, "Attention heads of a block; they divide the width");
  Add(app, "--mlp-ratio", model.mlp_ratio, "Hidden channels of an MLP, in widths");
  Add(app, "--label-smoothing", model.label_smoothing,
      "Share of the target that is spread over all classes, 0 to below 1");
  Add(app, "--crop-padding", model.augmentation.crop_padding,
      "Shift images by up to so many pixels each way; 0: not at all");
  Add(app, "--crop-fraction", model.augmentation.fraction, "Part of the images shifted, 0 to 1");
  app.add_flag("--flip,!--no-flip", model.augmentation.flip,
               "Mirror half of the images, or none; default: none");
}

/// Who chose has said what is to become of the others; grey spreads over three without loss.
data::Colour ColourOf(std::uint32_t chosen) {
  if (chosen == 0) return data::Colour::kSame;
  return chosen == 1 ? data::Colour::kMayDrop : data::Colour::kKeep;
}

}  // namespace

void AddVit(CLI::App& app, VitFlags& flags) {
  CLI::App& vit =
      *app.add_subcommand("vit", "Trains a vision transformer that tells the classes of images");
  AddRunFlags(vit, flags);
  AddOptimizerFlags(vit, flags);
  AddModelFlags(vit, flags.model);
}

Result<VitRun> PrepareVit(const VitFlags& flags, const train::Worker& worker) {
  const spec::WorkerEnv& env = worker.env;
  const std::string path = !flags.data.empty() || env.data.empty() ? flags.data : env.data[0];
  if (path.empty()) {
    return Error(Code::kInvalid, "no dataset given",
                 "name a packed folder: muster-train vit --data DIR");
  }
  MUSTER_TRY(CheckRanges(flags));
  train::TrainerOptions options = flags.trainer;
  options.mode = MUSTER_TRY(Within("--mode", train::ParseMode(flags.mode)));
  options.overlap = MUSTER_TRY(Within("--overlap", train::ParseOverlap(flags.overlap)));
  options.order = MUSTER_TRY(Within("--order", data::ParseOrderMode(flags.order)));
  options.schedule = {.shape = MUSTER_TRY(Within("--schedule", train::ParseShape(flags.schedule))),
                      .peak = flags.learning_rate,
                      .total = options.steps,
                      .warm_up = static_cast<std::uint64_t>(
                          std::llround(flags.warm_up * static_cast<double>(options.steps)))};
  if (options.schedule.shape == train::Shape::kWsd) options.schedule.decay = options.steps / 5;
  if (options.checkpoint.folder.empty()) options.checkpoint.folder = env.checkpoint_dir;
  if (options.checkpoint.every == 0) options.checkpoint.every = env.checkpoint_every;

  auto splits = MUSTER_TRY(OpenSplits(path, flags.eval_split));
  VitOptions model = flags.model;
  model.image = MUSTER_TRY(ImageOf(*splits.train));
  if (options.global_batch > splits.train->rows()) {
    return Error(Code::kInvalid,
                 "--batch must be at most the " + Counted(splits.train->rows(), "row") +
                     " of the split train, it is " + std::to_string(options.global_batch));
  }
  if (flags.channels != 0) model.image.channels = flags.channels;
  options.colour = ColourOf(flags.channels);
  options.image = model.image;
  model.classes = static_cast<std::int64_t>(splits.train->label_names().size());
  MUSTER_TRY(
      CheckSplits(splits, model.image,
                  {.colour = options.colour, .every_image = !worker.heartbeat.HasStepped()}));
  MUSTER_TRY(Validate(model));
  return VitRun{.task = Vit(model), .splits = std::move(splits), .options = options};
}

}  // namespace muster::recipes
