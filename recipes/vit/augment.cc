#include "vit/augment.h"

#include <array>

#include "train/random.h"

namespace muster::recipes {
namespace {

using Table = std::array<float, 256>;

Table Normalisation() {
  Table table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = (static_cast<float>(i) / 255.0F - kPixelMean) / kPixelDeviation;
  }
  return table;
}

// Where an output pixel comes from: (row + down, column + right), mirrored when `flip`.
struct Cut {
  std::int64_t down = 0;
  std::int64_t right = 0;
  bool flip = false;
};

Cut DrawCut(const train::Samples& samples, std::size_t i, const Augmentation& augmentation) {
  const train::DrawKey key{
      .seed = samples.seed, .step = samples.step, .sample = samples.shard->rows[i]};
  Rng crop = DrawsFor(key, train::Use::kCrop);
  const auto shift = [&] {
    const auto padding = static_cast<std::int64_t>(augmentation.crop_padding);
    return static_cast<std::int64_t>(crop.Below(2 * augmentation.crop_padding + 1)) - padding;
  };
  Cut cut;
  if (crop.Uniform() < augmentation.fraction) {
    cut.down = shift();
    cut.right = shift();
  }
  cut.flip = augmentation.flip && DrawsFor(key, train::Use::kFlip).Below(2) == 1;
  return cut;
}

void CopyCut(const std::uint8_t* from, const data::ImageShape& image, const Cut& cut,
             const Table& table, float* to) {
  const std::int64_t height = image.height;
  const std::int64_t width = image.width;
  const std::int64_t channels = image.channels;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t row = y + cut.down;
      const std::int64_t column = (cut.flip ? width - 1 - x : x) + cut.right;
      const bool inside = row >= 0 && row < height && column >= 0 && column < width;
      for (std::int64_t c = 0; c < channels; ++c) {
        *to++ = table[inside ? from[(row * width + column) * channels + c] : 0];
      }
    }
  }
}

template <typename CutOf>
at::Tensor Pixels(const train::Samples& samples, const CutOf& cut_of) {
  static const Table table = Normalisation();
  const auto count = samples.shard->rows.size();
  const std::size_t pixels = samples.image.bytes();
  at::Tensor out_BHWC = at::empty({static_cast<std::int64_t>(count), samples.image.height,
                                   samples.image.width, samples.image.channels});
  auto* out = out_BHWC.mutable_data_ptr<float>();
  for (std::size_t i = 0; i < count; ++i) {
    CopyCut(samples.shard->pixels.data() + i * pixels, samples.image, cut_of(i), table,
            out + i * pixels);
  }
  return out_BHWC;
}

}  // namespace

at::Tensor Augmented(const train::Samples& samples, const Augmentation& augmentation) {
  return Pixels(samples, [&](std::size_t i) { return DrawCut(samples, i, augmentation); });
}

at::Tensor Normalised(const train::Samples& samples) {
  return Pixels(samples, [](std::size_t) { return Cut{}; });
}

}  // namespace muster::recipes
