#include "vit/vit.h"

#include <ATen/ops/argmax.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace muster::recipes {
namespace {

constexpr double kPositionBound = 0.02;
constexpr std::int64_t kMostPatch = 1 << 16;

// Every digit: configurations are compared.
std::string Exactly(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

at::Tensor Labels(const data::MicroShard& shard) {
  return at::tensor(at::ArrayRef<std::int64_t>(shard.labels.data(), shard.labels.size()));
}

// The patch nearest to the one asked for that gives at least two patches each way.
std::string PatchHint(const VitOptions& options) {
  const std::int64_t height = options.image.height;
  const std::int64_t width = options.image.width;
  std::int64_t best = 0;
  for (std::int64_t patch = 1; patch <= std::min({height / 2, width / 2, kMostPatch}); ++patch) {
    if (height % patch != 0 || width % patch != 0) continue;
    if (best == 0 || std::abs(patch - options.patch) <= std::abs(best - options.patch))
      best = patch;
  }
  if (best > 1) return "--patch " + std::to_string(best) + " divides them";
  return std::string(best == 1 ? "only --patch 1 divides them: " : "") +
         "resize the images, for example to a multiple of 8, and pack them again";
}

}  // namespace

Status Validate(const VitOptions& options) {
  const auto refuse = [](const std::string& why) { return Error(Code::kInvalid, why); };
  const auto text = [](std::int64_t n) { return std::to_string(n); };
  if (options.patch < 1 || options.image.height % options.patch != 0 ||
      options.image.width % options.patch != 0) {
    return refuse("patch " + text(options.patch) + " does not divide images of " +
                  text(options.image.width) + " × " + text(options.image.height) + " pixels")
        .Hint(PatchHint(options));
  }
  if (options.heads < 1 || options.width < 1 || options.width % options.heads != 0) {
    return refuse(text(options.heads) + " heads do not divide width " + text(options.width));
  }
  if (options.blocks < 1) return refuse("a model of " + text(options.blocks) + " blocks");
  if (options.mlp_ratio < 1) return refuse("mlp ratio " + text(options.mlp_ratio));
  if (options.classes < 2) return refuse(text(options.classes) + " classes: two are the least");
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1)) {
    return refuse("label smoothing must be in [0, 1)");
  }
  return Ok();
}

void Vit::Define(train::FlatModel& model) {
  const std::int64_t tokens =
      options_.image.height / options_.patch * (options_.image.width / options_.patch);
  const std::int64_t inputs = options_.patch * options_.patch * options_.image.channels;
  const std::int64_t width = options_.width;
  const std::int64_t hidden = options_.mlp_ratio * width;

  train::Unit& stem = model.AddUnit("stem");
  embed_ = nn::AddLinear(stem, "embed", inputs, width);
  positions_TC_ = &stem.Add("positions", {tokens, width});
  for (std::int64_t i = 0; i < options_.blocks; ++i) {
    train::Unit& unit = model.AddUnit("block." + std::to_string(i));
    blocks_.push_back({.attention_norm = nn::AddNorm(unit, "attention_norm", width),
                       .qkv = nn::AddLinear(unit, "qkv", width, 3 * width),
                       .out = nn::AddLinear(unit, "out", width, width),
                       .mlp_norm = nn::AddNorm(unit, "mlp_norm", width),
                       .up = nn::AddLinear(unit, "up", width, hidden),
                       .down = nn::AddLinear(unit, "down", hidden, width)});
  }
  train::Unit& head = model.AddUnit("head");
  norm_ = nn::AddNorm(head, "norm", width);
  head_ = nn::AddLinear(head, "logits", width, options_.classes);
}

void Vit::Initialize(std::uint64_t seed) {
  nn::Initialize(embed_, seed);
  nn::FillUniform(*positions_TC_, seed, kPositionBound);
  for (const Block& block : blocks_) {
    nn::Initialize(block.attention_norm);
    nn::Initialize(block.mlp_norm);
    for (const auto& linear : {block.qkv, block.out, block.up, block.down}) {
      nn::Initialize(linear, seed);
    }
  }
  nn::Initialize(norm_);
  nn::Initialize(head_, seed);
}

// Cuts images into P × P patches, row by row: [B, T, P·P·channels].
at::Tensor Vit::Patches(const at::Tensor& pixels_BHWC) const {
  const std::int64_t p = options_.patch;
  const std::int64_t rows = options_.image.height / p;
  const std::int64_t columns = options_.image.width / p;
  const std::int64_t channels = options_.image.channels;
  return pixels_BHWC.view({-1, rows, p, columns, p, channels})
      .permute({0, 1, 3, 2, 4, 5})
      .reshape({-1, rows * columns, p * p * channels});
}

at::Tensor Vit::Forward(const at::Tensor& pixels_BHWC) const {
  at::Tensor x_BTC = embed_(Patches(pixels_BHWC)) + positions_TC_->value;
  for (const Block& block : blocks_) {
    const at::Tensor qkv_BT3C = block.qkv(block.attention_norm(x_BTC));
    x_BTC = x_BTC + block.out(nn::SelfAttention(qkv_BT3C, options_.heads));
    x_BTC = x_BTC + block.down(nn::Gelu(block.up(block.mlp_norm(x_BTC))));
  }
  return head_(norm_(x_BTC).mean(1));
}

nn::LossSum Vit::Loss(const train::Samples& samples) {
  const at::Tensor pixels_BHWC = Augmented(samples, options_.augmentation);
  return nn::CrossEntropy(Forward(pixels_BHWC), Labels(*samples.shard), samples.shard->valid,
                          options_.label_smoothing);
}

train::Score Vit::Evaluate(const train::Samples& samples) {
  const at::NoGradGuard no_grad;
  const at::Tensor logits_BK = Forward(Normalised(samples));
  const at::Tensor labels_B = Labels(*samples.shard);
  const auto loss = nn::CrossEntropy(logits_BK, labels_B, samples.shard->valid);
  const auto right_B = logits_BK.argmax(1).eq(labels_B).narrow(0, 0, samples.shard->valid);
  return {.loss_sum = loss.sum.item<double>(),
          .correct = static_cast<std::uint64_t>(right_B.sum().item<std::int64_t>()),
          .count = samples.shard->valid};
}

std::string Vit::ConfigJson() const {
  std::string json;
  const auto field = [&](const char* name, const std::string& value) {
    json += (json.empty() ? "{\"" : ",\"") + std::string(name) + "\":" + value;
  };
  const auto number = [&](const char* name, std::int64_t value) {
    field(name, std::to_string(value));
  };
  number("height", options_.image.height);
  number("width_pixels", options_.image.width);
  number("channels", options_.image.channels);
  number("patch", options_.patch);
  number("width", options_.width);
  number("blocks", options_.blocks);
  number("heads", options_.heads);
  number("mlp_ratio", options_.mlp_ratio);
  number("classes", options_.classes);
  field("label_smoothing", Exactly(options_.label_smoothing));
  field("crop_fraction", Exactly(options_.augmentation.fraction));
  number("crop_padding", options_.augmentation.crop_padding);
  field("flip", options_.augmentation.flip ? "true" : "false");
  return json + "}";
}

}  // namespace muster::recipes
