#include "data/stream/batch_filler.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "data/decode/image.h"

namespace muster::data {
namespace {

/// Fills what the options leave open from the set's first image.
Result<ImageShape> ShapeOf(const Dataset& dataset, ImageShape shape) {
  if (shape.channels != 0 && shape.channels != 1 && shape.channels != 3) {
    return Error(Code::kInvalid, fmt::format("{} channels; images have 1 or 3", shape.channels));
  }
  if (shape.height != 0 && shape.width != 0 && shape.channels != 0) return shape;
  constexpr std::uint64_t kFirst = 0;
  const RowView first = MUSTER_TRY(dataset.Read(kFirst));
  auto read = Within(dataset.Where(kFirst) + ": the image", ReadImageHeader(first.image));
  MUSTER_TRY(dataset.CheckRead(std::span(&kFirst, 1)));
  const ImageHeader header = MUSTER_TRY(std::move(read));
  if (shape.height == 0) shape.height = header.height;
  if (shape.width == 0) shape.width = header.width;
  if (shape.channels == 0) shape.channels = header.channels;
  return shape;
}

}  // namespace

Result<BatchFiller> BatchFiller::Create(std::shared_ptr<const Dataset> dataset,
                                        const LoaderOptions& options) {
  BatchFiller filler;
  filler.ranges_ = MUSTER_TRY(SlotsOfRank(options));
  if (options.window == 0) return Error(Code::kInvalid, "a shuffle window of 0 shards");
  filler.steps_per_epoch_ = StepsPerEpoch(dataset->rows(), options);
  if (filler.steps_per_epoch_ == 0) {
    return Error(Code::kInvalid,
                 fmt::format("a global batch of {} from a set of {}", options.global_batch,
                             Counted(dataset->rows(), "row")));
  }
  filler.image_ = MUSTER_TRY(ShapeOf(*dataset, options.image));
  filler.options_ = options;
  filler.dataset_ = std::move(dataset);
  return filler;
}

std::shared_ptr<BatchStorage> BatchFiller::NewStorage(std::uint64_t step) const {
  auto storage = std::make_shared<BatchStorage>(ranges_, image_);
  storage->step = step;
  storage->epoch = step / steps_per_epoch_;
  return storage;
}

std::shared_ptr<const Order> BatchFiller::OrderOf(std::uint64_t step) const {
  return std::make_shared<const Order>(dataset_->shard_first_rows(),
                                       OrderOptions{.mode = options_.order,
                                                    .window = options_.window,
                                                    .seed = options_.seed,
                                                    .epoch = step / steps_per_epoch_});
}

Error BatchFiller::BadLabel(std::int64_t label) const {
  return Error(Code::kPrecondition,
               fmt::format("the label is {}, expected 0 to {}", label, options_.classes - 1),
               label < 0 ? "rows without a label can neither be learned nor scored; leave them out"
                         : "the set names fewer classes than its labels use");
}

Status BatchFiller::Fill(const Order& order, std::size_t shard, BatchStorage& storage) const {
  const SlotRange& range = ranges_[shard];
  const std::uint64_t rows = dataset_->rows();
  const std::uint64_t first = storage.step % steps_per_epoch_ * options_.global_batch + range.begin;
  // Past the end only with Tail::kPad: the epoch's first rows again, masked by `valid`.
  for (std::uint64_t i = 0; i < range.count; ++i) {
    storage.rows[shard][i] = order.At((first + i) % rows);
  }
  const std::uint64_t real = first >= rows ? 0 : std::min(range.count, rows - first);
  storage.shards[shard].valid = static_cast<std::uint32_t>(real);
  Status filled = FillRows(shard, storage);
  // Once for all of them, and over whatever else was found: what a lost page shows is no data.
  MUSTER_TRY(dataset_->CheckRead(storage.rows[shard]));
  return filled;
}

Status BatchFiller::FillRows(std::size_t shard, BatchStorage& storage) const {
  const std::span<std::uint8_t> pixels = storage.Pixels(shard);
  for (std::size_t i = 0; i < storage.rows[shard].size(); ++i) {
    const std::uint64_t row = storage.rows[shard][i];
    const RowView view = MUSTER_TRY(dataset_->Read(row));
    if (options_.classes != 0 &&
        !(view.label >= 0 && static_cast<std::uint64_t>(view.label) < options_.classes)) {
      return BadLabel(view.label).Within(dataset_->Where(row));
    }
    auto decoded = DecodeImage(view.image, image_,
                               pixels.subspan(i * image_.bytes(), image_.bytes()), options_.colour);
    if (!decoded) return std::move(decoded.error()).Within(dataset_->Where(row));
    storage.labels[shard][i] = view.label;
  }
  return Ok();
}

}  // namespace muster::data
