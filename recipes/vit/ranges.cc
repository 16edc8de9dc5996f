#include "vit/ranges.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "train/checkpoint/folder.h"

namespace muster::recipes {
namespace {

constexpr double kMost = std::numeric_limits<double>::max();

struct Range {
  double least = 0;
  double most = kMost;
  bool above = false;  ///< `least` itself is out
  bool below = false;  ///< `most` itself is out
};

constexpr Range kPositive{.above = true};
constexpr Range kFraction{.most = 1};
constexpr Range kBelowOne{.most = 1, .below = true};

struct Number {
  const char* flag;
  double value;
  Range range;
};

std::string Text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.12g", value);
  return text.data();
}

std::string Words(const Range& range) {
  std::string words = (range.above ? "above " : "at least ") + Text(range.least);
  if (range.most == kMost) return words + " and finite";
  return words + (range.below ? " and below " : " and at most ") + Text(range.most);
}

// Infinities and NaN are in no range.
bool Holds(const Range& range, double value) {
  const bool enough = range.above ? value > range.least : value >= range.least;
  return enough && (range.below ? value < range.most : value <= range.most);
}

template <typename T>
Number Of(const char* flag, T value, const Range& range) {
  return {flag, static_cast<double>(value), range};
}

Status Check(std::initializer_list<Number> numbers) {
  for (const Number& number : numbers) {
    if (Holds(number.range, number.value)) continue;
    return Error(Code::kInvalid, std::string(number.flag) + " must be " + Words(number.range) +
                                     ", it is " + Text(number.value));
  }
  return Ok();
}

}  // namespace

Status CheckRanges(const VitFlags& flags) {
  const train::TrainerOptions& run = flags.trainer;
  const VitOptions& model = flags.model;
  if (flags.channels != 0 && flags.channels != 1 && flags.channels != 3) {
    return Error(Code::kInvalid,
                 "--channels must be 1 or 3, it is " + std::to_string(flags.channels));
  }
  return Check({
      Of("--steps", run.steps, {.least = 1, .most = checkpoint::kMostStep}),
      Of("--batch", run.global_batch, {.least = 1, .most = 1 << 24}),
      Of("--log-every", run.log_every, {.most = checkpoint::kMostStep}),
      Of("--eval-every", run.eval_every, {.most = checkpoint::kMostStep}),
      Of("--checkpoint-every", run.checkpoint.every, {.most = checkpoint::kMostStep}),
      Of("--decode-threads", run.decode_threads, {.most = 256}),
      Of("--lr", flags.learning_rate, kPositive),
      Of("--warm-up", flags.warm_up, kFraction),
      Of("--weight-decay", run.optimizer.weight_decay, {}),
      Of("--beta1", run.optimizer.beta1, kBelowOne),
      Of("--beta2", run.optimizer.beta2, kBelowOne),
      Of("--clip-norm", run.optimizer.clip_norm, {}),
      Of("--patch", model.patch, {.least = 1, .most = 1 << 16}),
      Of("--width", model.width, {.least = 1, .most = 1 << 16}),
      Of("--blocks", model.blocks, {.least = 1, .most = 4096}),
      Of("--heads", model.heads, {.least = 1, .most = 1 << 16}),
      Of("--mlp-ratio", model.mlp_ratio, {.least = 1, .most = 1024}),
      Of("--label-smoothing", model.label_smoothing, kBelowOne),
      Of("--crop-padding", model.augmentation.crop_padding, {.most = 1 << 16}),
      Of("--crop-fraction", model.augmentation.fraction, kFraction),
  });
}

}  // namespace muster::recipes
