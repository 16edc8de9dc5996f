#pragma once
// A vision transformer for image classification, as in "An Image is Worth 16×16 Words"
// (Dosovitskiy et al., ICLR 2021), at any size: patch embedding, learned positions, pre-norm blocks
// of attention and MLP, mean pooling, linear head. Training thread.

#include <string>
#include <vector>

#include "train/nn/layers.h"
#include "train/task.h"
#include "vit/augment.h"

namespace muster::recipes {

namespace nn = train::nn;

struct VitOptions {
  data::ImageShape image{.height = 28, .width = 28, .channels = 1};
  std::int64_t patch = 7;
  std::int64_t width = 64;
  std::int64_t blocks = 3;
  std::int64_t heads = 4;
  std::int64_t mlp_ratio = 4;
  std::int64_t classes = 10;
  double label_smoothing = 0;
  Augmentation augmentation;
};

/// Invalid, naming the option, when sizes do not fit together.
Status Validate(const VitOptions& options);

class Vit final : public train::Task {
 public:
  /// `options` must be valid.
  explicit Vit(const VitOptions& options) : options_(options) {}

  std::string_view name() const override { return "vit"; }
  std::string ConfigJson() const override;
  void Define(train::FlatModel& model) override;
  void Initialize(std::uint64_t seed) override;
  nn::LossSum Loss(const train::Samples& samples) override;
  train::Score Evaluate(const train::Samples& samples) override;

  /// Logits from normalised pixels.
  at::Tensor Forward(const at::Tensor& pixels_BHWC) const;

 private:
  struct Block {
    nn::NormLayer attention_norm;
    nn::LinearLayer qkv, out;
    nn::NormLayer mlp_norm;
    nn::LinearLayer up, down;
  };
  at::Tensor Patches(const at::Tensor& pixels_BHWC) const;

  VitOptions options_;
  nn::LinearLayer embed_;
  train::Parameter* positions_TC_ = nullptr;
  std::vector<Block> blocks_;
  nn::NormLayer norm_;
  nn::LinearLayer head_;
};

}  // namespace muster::recipes
