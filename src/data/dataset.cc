#include "data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/text.h"
#include "data/layout/checked_batch.h"
#include "data/layout/image_columns.h"
#include "data/layout/split_folder.h"

namespace muster::data {
namespace {

/// Where a global row lies.
struct Position {
  std::size_t shard = 0;
  std::size_t batch = 0;
  std::uint64_t row = 0;  ///< in the batch
  std::uint64_t row_in_shard = 0;
};

struct ShardRows {
  std::vector<std::uint64_t> batch_first;  ///< first row of each batch, and the shard's rows
  std::unique_ptr<std::atomic<const CheckedBatch*>[]> batches;
};

std::size_t LastAtMost(const std::vector<std::uint64_t>& firsts, std::uint64_t value) {
  return static_cast<std::size_t>(std::upper_bound(firsts.begin(), firsts.end(), value) -
                                  firsts.begin()) -
         1;
}

class ImageDataset final : public Dataset {
 public:
  ImageDataset(std::unique_ptr<SplitFolder> split, const ImageColumns& columns)
      : split_(std::move(split)), columns_(columns) {
    first_rows_.push_back(0);
    for (const ShardEntry& shard : split_->shards()) {
      first_rows_.push_back(first_rows_.back() + shard.rows);
      infos_.push_back({shard.name, shard.bytes, shard.rows, shard.batches.size()});
      ShardRows rows{.batch_first = {0}};
      for (const BatchEntry& batch : shard.batches) {
        rows.batch_first.push_back(rows.batch_first.back() + batch.frame.rows);
      }
      rows.batches = std::make_unique<std::atomic<const CheckedBatch*>[]>(
          std::max<std::size_t>(shard.batches.size(), 1));
      shards_.push_back(std::move(rows));
    }
  }
  ~ImageDataset() override {
    for (std::size_t s = 0; s < shards_.size(); ++s) {
      for (std::size_t b = 0; b + 1 < shards_[s].batch_first.size(); ++b) {
        delete shards_[s].batches[b].load(std::memory_order_relaxed);
      }
    }
  }

  const DatasetId& id() const override { return split_->id(); }
  std::uint64_t rows() const override { return first_rows_.back(); }
  const std::vector<std::string>& label_names() const override {
    return split_->features().label_names;
  }
  const std::vector<ShardInfo>& shards() const override { return infos_; }
  std::span<const std::uint64_t> shard_first_rows() const override { return first_rows_; }
  bool has_checksums() const override { return split_->has_manifest(); }

  Result<RowView> Read(std::uint64_t row) const override {
    if (row >= rows()) {
      return Error(Code::kInvalid,
                   fmt::format("row {} of a set with {}", row, Counted(rows(), "row")));
    }
    const Position at = Find(row);
    const CheckedBatch& batch = *MUSTER_TRY(Load(at));
    auto view = ReadFrom(batch, at);
    if (view) return view;
    MUSTER_TRY(split_->Whole(at.shard));
    return std::move(view.error()).Within(Where(row));
  }

  Status CheckRead(std::span<const std::uint64_t> rows) const override {
    std::vector<std::size_t> touched;
    for (const std::uint64_t row : rows) touched.push_back(LastAtMost(first_rows_, row));
    std::ranges::sort(touched);
    const auto repeated = std::ranges::unique(touched);
    touched.erase(repeated.begin(), repeated.end());
    for (const std::size_t shard : touched) MUSTER_TRY(split_->Whole(shard));
    return Ok();
  }

  std::string Where(std::uint64_t row) const override {
    const Position at = Find(row);
    return fmt::format("{}, batch {}, row {}", split_->NameOf(at.shard), at.batch, at.row);
  }

 private:
  Position Find(std::uint64_t row) const {
    Position at{.shard = LastAtMost(first_rows_, row)};
    at.row_in_shard = row - first_rows_[at.shard];
    const auto& firsts = shards_[at.shard].batch_first;
    at.batch = LastAtMost(firsts, at.row_in_shard);
    at.row = at.row_in_shard - firsts[at.batch];
    return at;
  }

  /// The checked batch; checked once by whoever comes first. Two threads may both check it, one
  /// result stays.
  Result<const CheckedBatch*> Load(const Position& at) const {
    std::atomic<const CheckedBatch*>& slot = shards_[at.shard].batches[at.batch];
    if (const CheckedBatch* ready = slot.load(std::memory_order_acquire)) return ready;
    auto checked = MUSTER_TRY(Check(at));
    const CheckedBatch* expected = nullptr;
    if (slot.compare_exchange_strong(expected, checked.get(), std::memory_order_acq_rel)) {
      return checked.release();
    }
    return expected;
  }

  Result<std::unique_ptr<const CheckedBatch>> Check(const Position& at) const {
    return std::make_unique<const CheckedBatch>(MUSTER_TRY(CheckedBatch::Read(
        *split_, columns_, at.shard, at.batch, shards_[at.shard].batch_first[at.batch])));
  }

  Result<RowView> ReadFrom(const CheckedBatch& batch, const Position& at) const {
    const auto row = static_cast<std::int64_t>(at.row);
    const arrow::ArrayView& image = batch.view().columns[static_cast<std::size_t>(columns_.image)];
    const arrow::ArrayView& bytes = columns_.Images(batch.view());
    if (image.IsNull(row) || bytes.IsNull(row)) {
      return Error(Code::kPrecondition, "the row holds no image bytes",
                   "the set was saved with paths only; save it with embedded images");
    }
    RowView view{.image = bytes.Bytes(row)};
    MUSTER_TRY(batch.CheckImage(at.row, view.image));
    if (columns_.path >= 0) {
      view.path = AsText(image.children[static_cast<std::size_t>(columns_.path)].Bytes(row));
    }
    if (columns_.label >= 0) {
      const auto& label = batch.view().columns[static_cast<std::size_t>(columns_.label)];
      if (!label.IsNull(row)) view.label = label.Integer(row);
    }
    if (columns_.source >= 0) {
      view.source =
          AsText(batch.view().columns[static_cast<std::size_t>(columns_.source)].Bytes(row));
    }
    return view;
  }

  std::unique_ptr<SplitFolder> split_;
  ImageColumns columns_;
  std::vector<std::uint64_t> first_rows_;
  std::vector<ShardInfo> infos_;
  std::vector<ShardRows> shards_;
};

/// A split without a name is nobody's "test": it is what was trained on as well.
Result<SplitPlace> PickSplit(const std::string& path, const std::string& wanted) {
  const auto places = MUSTER_TRY(SplitsNamed(path, wanted, MUSTER_TRY(FindSplits(path))));
  if (places.size() == 1) return places[0];
  if (places.empty()) return Error(Code::kPrecondition, path + " has no splits");
  std::string known;
  for (const SplitPlace& place : places) known += (known.empty() ? "" : ", ") + place.name;
  return Error(Code::kInvalid, fmt::format("{} has several splits: {}", path, known),
               "name one with --split");
}

}  // namespace

Result<std::shared_ptr<const Dataset>> Dataset::Open(const std::string& path,
                                                     const OpenOptions& options) {
  const SplitPlace place = MUSTER_TRY(PickSplit(path, options.split));
  auto split = MUSTER_TRY(SplitFolder::Open(place));
  const auto columns = Within(place.folder, ImageColumns::Find(split->schema(), split->features()));
  // A pack of ours has one, so it is the schema that is damaged.
  if (!columns && split->has_manifest()) {
    return Error(Code::kDataLoss,
                 split->NameOf(split->schema_shard()) + " has no column of images any more",
                 "'muster data verify' lists all that is damaged");
  }
  if (!columns) return columns.error();
  return std::shared_ptr<const Dataset>(std::make_shared<ImageDataset>(std::move(split), *columns));
}

}  // namespace muster::data
