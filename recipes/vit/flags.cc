#include "vit/flags.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include "data/decode/image.h"

namespace muster::recipes {
namespace {

void AddRunFlags(CLI::App& app, VitFlags& flags) {
  auto& trainer = flags.trainer;
  app.add_option("--data", flags.data, "packed dataset (default: $MUSTER_DATA_0)");
  app.add_option("--steps", trainer.steps, "optimizer steps")->capture_default_str();
  app.add_option("--batch", trainer.global_batch, "samples of all ranks in a step")
      ->capture_default_str();
  app.add_option("--seed", trainer.seed, "of order, augmentation and first weights")
      ->capture_default_str();
  app.add_option("--mode", flags.mode, "canonical (same bits on 1, 2, 4 and 8 ranks) or fast")
      ->capture_default_str();
  app.add_option("--order", flags.order, "sequential, shard, window or full")
      ->capture_default_str();
  app.add_option("--decode-threads", trainer.decode_threads, "0 decodes between steps")
      ->capture_default_str();
  app.add_option("--log-every", trainer.log_every, "steps")->capture_default_str();
  app.add_option("--eval-every", trainer.eval_every, "steps; 0: at the end")->capture_default_str();
  app.add_option("--checkpoint-dir", trainer.checkpoint.folder,
                 "where to save and resume (default: what muster run says)");
  app.add_option("--checkpoint-every", trainer.checkpoint.every,
                 "steps; 0: what muster run says, else at the end");
  app.add_option("--keep", trainer.checkpoint.keep_last, "newest checkpoints to keep; 0: all")
      ->capture_default_str();
}

void AddOptimizerFlags(CLI::App& app, VitFlags& flags) {
  auto& optimizer = flags.trainer.optimizer;
  app.add_option("--lr", flags.learning_rate, "peak learning rate")->capture_default_str();
  app.add_option("--warm-up", flags.warm_up, "fraction of the steps")->capture_default_str();
  app.add_option("--schedule", flags.schedule, "constant, cosine or wsd")->capture_default_str();
  app.add_option("--weight-decay", optimizer.weight_decay, "decoupled")->capture_default_str();
  app.add_option("--beta1", optimizer.beta1)->capture_default_str();
  app.add_option("--beta2", optimizer.beta2)->capture_default_str();
  app.add_option("--clip-norm", optimizer.clip_norm, "0: no clipping")->capture_default_str();
}

void AddModelFlags(CLI::App& app, VitOptions& model) {
  app.add_option("--patch", model.patch, "pixels, both ways")->capture_default_str();
  app.add_option("--width", model.width, "channels of a token")->capture_default_str();
  app.add_option("--blocks", model.blocks)->capture_default_str();
  app.add_option("--heads", model.heads)->capture_default_str();
  app.add_option("--mlp-ratio", model.mlp_ratio)->capture_default_str();
  app.add_option("--label-smoothing", model.label_smoothing)->capture_default_str();
  app.add_option("--crop-padding", model.augmentation.crop_padding, "shift by up to so many pixels")
      ->capture_default_str();
  app.add_option("--crop-fraction", model.augmentation.fraction, "of the images that are shifted")
      ->capture_default_str();
  app.add_flag("--flip,!--no-flip", model.augmentation.flip, "mirror half of the images");
}

Result<train::Splits> OpenSplits(const std::string& path) {
  train::Splits splits;
  splits.train = MUSTER_TRY(data::Dataset::Open(path, {.split = "train"}));
  auto test = data::Dataset::Open(path, {.split = "test"});
  if (test) {
    splits.test = *std::move(test);
  } else if (test.error().code() != Code::kNotFound) {
    return std::move(test.error());
  }
  return splits;
}

// The first image's size counts for all; the loader refuses another one.
Result<data::ImageShape> ImageOf(const data::Dataset& dataset) {
  if (dataset.rows() == 0) return Error(Code::kInvalid, "the dataset has no rows");
  const data::RowView row = MUSTER_TRY(dataset.Read(0));
  const auto header = MUSTER_TRY(Within(dataset.Where(0), data::ReadImageHeader(row.image)));
  return data::ImageShape{header.height, header.width, header.channels};
}

}  // namespace

void AddVit(CLI::App& app, VitFlags& flags) {
  CLI::App& vit = *app.add_subcommand("vit", "vision transformer for image classification");
  AddRunFlags(vit, flags);
  AddOptimizerFlags(vit, flags);
  AddModelFlags(vit, flags.model);
}

Result<VitRun> PrepareVit(const VitFlags& flags, const spec::WorkerEnv& env) {
  const std::string path = !flags.data.empty() || env.data.empty() ? flags.data : env.data[0];
  if (path.empty()) {
    return Error(Code::kInvalid, "no dataset given",
                 "name a packed folder: muster-train vit --data DIR");
  }
  train::TrainerOptions options = flags.trainer;
  options.mode = MUSTER_TRY(train::ParseMode(flags.mode));
  options.order = MUSTER_TRY(data::ParseOrderMode(flags.order));
  options.schedule = {.shape = MUSTER_TRY(train::ParseShape(flags.schedule)),
                      .peak = flags.learning_rate,
                      .total = options.steps,
                      .warm_up = static_cast<std::uint64_t>(
                          std::llround(flags.warm_up * static_cast<double>(options.steps)))};
  if (options.schedule.shape == train::Shape::kWsd) options.schedule.decay = options.steps / 5;
  if (options.checkpoint.folder.empty()) options.checkpoint.folder = env.checkpoint_dir;
  if (options.checkpoint.every == 0) options.checkpoint.every = env.checkpoint_every;

  auto splits = MUSTER_TRY(OpenSplits(path));
  VitOptions model = flags.model;
  model.image = MUSTER_TRY(ImageOf(*splits.train));
  options.image = model.image;
  model.classes = static_cast<std::int64_t>(splits.train->label_names().size());
  MUSTER_TRY(Validate(model));
  return VitRun{.task = Vit(model), .splits = std::move(splits), .options = options};
}

}  // namespace muster::recipes
