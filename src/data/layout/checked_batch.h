#pragma once
// A record batch whose frame and part of the row index were held against the manifest before anyone
// sees a value of it, and the check of each image when its row is read. Whoever hands out rows goes
// through here, so that no reader can forget it. Without a manifest there is nothing to check with.
//
// Immutable; any thread; valid while the SplitFolder is.

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "data/arrow/decode.h"
#include "data/layout/image_columns.h"
#include "data/layout/split_folder.h"

namespace muster::data {

class CheckedBatch {
 public:
  /// DataLoss, naming the batch and the file that is damaged, the shard or its row index, when
  /// anything but an image is not what was packed.
  /// `first_row` is the batch's first row in its shard.
  static Result<CheckedBatch> Read(const SplitFolder& split,
                                   const std::optional<ImageColumns>& columns, std::size_t shard,
                                   std::size_t batch, std::uint64_t first_row);

  const arrow::BatchView& view() const { return view_; }
  /// DataLoss when the image of row `row` < view().rows is not what was packed. What is read from
  /// the map after that needs SplitFolder::Whole once more.
  Status CheckImage(std::uint64_t row, ByteSpan image) const;

 private:
  CheckedBatch(const SplitFolder& split, std::size_t shard) : split_(&split), shard_(shard) {}
  Status CheckFrame(const std::optional<ImageColumns>& columns, std::size_t batch);
  Status CheckIndex(std::size_t batch, std::uint64_t first_row);
  Status CheckRecorded(std::uint64_t row, ByteSpan image) const;

  const SplitFolder* split_;
  std::size_t shard_;
  arrow::BatchView view_;
  ByteSpan body_;
  ByteSpan entries_;  ///< of the row index; empty without a manifest
};

}  // namespace muster::data
