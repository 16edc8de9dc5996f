#pragma once
// From 8-bit pixels to normalised fp32, with a random shift and flip whose draws are keyed by
// (seed, step, sample): the same sample at the same step is cut the same way on any rank and in any
// replay. Training thread.

#include <ATen/core/Tensor.h>

#include "train/task.h"

namespace muster::recipes {

/// Pixel statistics of Fashion-MNIST's training split, in units of full scale.
inline constexpr float kPixelMean = 0.286F;
inline constexpr float kPixelDeviation = 0.353F;

struct Augmentation {
  double fraction = 0.5;           ///< of the images that are shifted
  std::uint32_t crop_padding = 1;  ///< shift by up to so many pixels each way, black beyond
  bool flip = false;               ///< mirror half of the images
};

/// [B, H, W, C], shifted and flipped.
at::Tensor Augmented(const train::Samples& samples, const Augmentation& augmentation);
/// [B, H, W, C], as they are.
at::Tensor Normalised(const train::Samples& samples);

}  // namespace muster::recipes
