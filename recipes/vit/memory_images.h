#pragma once
// For tests: a labelled image dataset made in memory, as PNG files like a packed one has. Images of
// a class share a pattern under noise, so a small model learns them in a few steps. Immutable.

#include <array>
#include <vector>

#include "base/rng.h"
#include "data/dataset.h"
#include "data/decode/image.h"

namespace muster::recipes {

class MemoryImages final : public data::Dataset {
 public:
  MemoryImages(std::uint64_t rows, const data::ImageShape& shape, std::uint64_t seed)
      : ends_{0, rows} {
    for (std::uint64_t row = 0; row < rows; ++row) {
      std::vector<std::uint8_t> pixels(shape.bytes());
      Rng noise(Mix(seed, row));
      Rng pattern(Mix(7, row % kClasses));
      for (auto& pixel : pixels) {
        pixel = static_cast<std::uint8_t>(pattern.Below(160) + noise.Below(96));
      }
      auto png = data::EncodePng(shape, pixels);
      MUSTER_CHECK(png.has_value());
      files_.push_back(*std::move(png));
    }
    id_.bytes[0] = static_cast<std::uint8_t>(seed);
  }

  const data::DatasetId& id() const override { return id_; }
  std::uint64_t rows() const override { return files_.size(); }
  const std::vector<std::string>& label_names() const override { return names_; }
  const std::vector<data::ShardInfo>& shards() const override { return shards_; }
  std::span<const std::uint64_t> shard_first_rows() const override { return ends_; }
  bool has_checksums() const override { return false; }
  Status CheckRead(std::span<const std::uint64_t>) const override { return Ok(); }
  Result<data::RowView> Read(std::uint64_t row) const override {
    const auto label = row == bad_row ? bad_label : static_cast<std::int64_t>(row % kClasses);
    return data::RowView{.image = files_[row], .label = label};
  }
  std::string Where(std::uint64_t row) const override {
    return "memory, row " + std::to_string(row);
  }

  std::uint64_t bad_row = ~std::uint64_t{0};  ///< has `bad_label`
  std::int64_t bad_label = -1;

 private:
  static constexpr std::uint64_t kClasses = 4;
  std::array<std::uint64_t, 2> ends_;
  data::DatasetId id_;
  std::vector<std::string> names_{"a", "b", "c", "d"};
  std::vector<data::ShardInfo> shards_{{.name = "memory"}};
  std::vector<std::vector<std::byte>> files_;
};

}  // namespace muster::recipes
