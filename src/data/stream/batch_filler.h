#pragma once
// Makes the batches of one rank: which rows a step holds, and decoding one micro-shard of it. Knows
// nothing of threads; everything here is a function of the step. Immutable after Create; any
// thread.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "data/loader.h"
#include "data/order/order.h"
#include "data/stream/batch_storage.h"
#include "data/stream/step_plan.h"

namespace muster::data {

class BatchFiller {
 public:
  static Result<BatchFiller> Create(std::shared_ptr<const Dataset> dataset,
                                    const LoaderOptions& options);

  /// Empty storage for a step, with its step and epoch set.
  std::shared_ptr<BatchStorage> NewStorage(std::uint64_t step) const;
  /// The order of the epoch that `step` is in.
  std::shared_ptr<const Order> OrderOf(std::uint64_t step) const;
  /// Reads and decodes micro-shard `shard` of the storage's step.
  Status Fill(const Order& order, std::size_t shard, BatchStorage& storage) const;

  std::size_t shards() const { return ranges_.size(); }
  std::uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  std::size_t batch_bytes() const { return BatchStorage::BytesFor(ranges_, image_); }
  const ImageShape& image() const { return image_; }
  const LoaderOptions& options() const { return options_; }
  const Dataset& dataset() const { return *dataset_; }

 private:
  Error BadLabel(std::int64_t label) const;
  Status FillRows(std::size_t shard, BatchStorage& storage) const;

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  std::vector<SlotRange> ranges_;
  ImageShape image_;
  std::uint64_t steps_per_epoch_ = 0;
};

}  // namespace muster::data
