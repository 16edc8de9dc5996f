#include "vit/flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/text.h"
#include "vit/ranges.h"
#include "vit/splits.h"

namespace muster::recipes {
namespace {

// CLI11 takes -1 for the greatest unsigned number, and one that is too large for the largest.
std::string Whole(const std::string& text, bool negative) {
  const bool minus = negative && text.starts_with('-');
  const std::string digits = text.substr(minus ? 1 : 0);
  std::uint64_t value = 0;
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  if (error == std::errc() && end == last) return "";
  return "'" + text + "' is no whole number of at most " +
         std::to_string(std::numeric_limits<std::uint64_t>::max());
}

template <typename T>
CLI::Option* AddWhole(CLI::App& app, const char* flag, T& value, const char* about = "") {
  static_assert(std::is_integral_v<T>);
  return app.add_option(flag, value, about)->check([](const std::string& text) {
    return Whole(text, std::is_signed_v<T>);
  });
}

void AddRunFlags(CLI::App& app, VitFlags& flags) {
  auto& trainer = flags.trainer;
  app.add_option("--data", flags.data, "packed dataset (default: $MUSTER_DATA_0)");
  AddWhole(app, "--steps", trainer.steps, "optimizer steps")->capture_default_str();
  AddWhole(app, "--batch", trainer.global_batch, "samples of all ranks in a step")
      ->capture_default_str();
  AddWhole(app, "--channels", flags.channels,
           "1: images are made grey, 3: RGB (default: those of the first image)");
  AddWhole(app, "--seed", trainer.seed, "of order, augmentation and first weights")
      ->capture_default_str();
  app.add_option("--mode", flags.mode, "canonical (same bits on 1, 2, 4 and 8 ranks) or fast")
      ->capture_default_str();
  app.add_option("--overlap", flags.overlap,
                 "reduce gradients beside backward: auto (with two cores a rank), on or off")
      ->capture_default_str();
  app.add_option("--order", flags.order, "sequential, shard, window or full")
      ->capture_default_str();
  AddWhole(app, "--decode-threads", trainer.decode_threads, "0 decodes between steps")
      ->capture_default_str();
  AddWhole(app, "--log-every", trainer.log_every, "steps")->capture_default_str();
  AddWhole(app, "--eval-every", trainer.eval_every, "steps; 0: at the end")->capture_default_str();
  app.add_option("--eval-split", flags.eval_split,
                 "split to evaluate on (default: test, else validation, else none)");
  app.add_option("--checkpoint-dir", trainer.checkpoint.folder,
                 "where to save and resume (default: what muster run says)");
  AddWhole(app, "--checkpoint-every", trainer.checkpoint.every,
           "steps; 0: what muster run says, else at the end");
  AddWhole(app, "--keep", trainer.checkpoint.keep_last, "newest checkpoints to keep; 0: all")
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
  AddWhole(app, "--patch", model.patch, "pixels, both ways")->capture_default_str();
  AddWhole(app, "--width", model.width, "channels of a token")->capture_default_str();
  AddWhole(app, "--blocks", model.blocks)->capture_default_str();
  AddWhole(app, "--heads", model.heads)->capture_default_str();
  AddWhole(app, "--mlp-ratio", model.mlp_ratio)->capture_default_str();
  app.add_option("--label-smoothing", model.label_smoothing)->capture_default_str();
  AddWhole(app, "--crop-padding", model.augmentation.crop_padding, "shift by up to so many pixels")
      ->capture_default_str();
  app.add_option("--crop-fraction", model.augmentation.fraction, "of the images that are shifted")
      ->capture_default_str();
  app.add_flag("--flip,!--no-flip", model.augmentation.flip, "mirror half of the images");
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
  options.drop_colour = flags.channels == 1;  // asked for by name
  options.image = model.image;
  model.classes = static_cast<std::int64_t>(splits.train->label_names().size());
  MUSTER_TRY(CheckSplits(
      splits, model.image,
      {.drop_colour = options.drop_colour, .every_image = env.generation == Generation(1)}));
  MUSTER_TRY(Validate(model));
  return VitRun{.task = Vit(model), .splits = std::move(splits), .options = options};
}

}  // namespace muster::recipes
