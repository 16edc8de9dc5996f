#pragma once
// Packer writes an opened input as a dataset: HF's save_to_disk layout plus `_muster/`
// (docs/formats/dataset.md). Workers read and check images and build record batches; the calling
// thread writes them in order. The same input and options give the same bytes for any number of
// threads; the folder appears whole at the end or not at all.
//
// Memory: a batch (64 MiB of images at most, 100 rows) a worker, and `memory` of batches that wait
// for their turn.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file_system.h"
#include "base/result.h"
#include "data/dataset_id.h"
#include "data/pack/batch_sequencer.h"
#include "data/pack/census.h"
#include "data/pack/row_source.h"

namespace muster::data {

enum class OnError {
  kStop,  ///< the first bad row ends the pack; nothing is written
  kSkip,  ///< bad rows are left out, counted and reported
};

struct PackProgress {
  std::uint64_t rows = 0;      ///< done, skipped ones included
  std::uint64_t all_rows = 0;  ///< of all splits
  std::uint64_t image_bytes = 0;
};

struct PackOptions {
  unsigned threads = 1;
  Bytes shard_size{1'000'000'000};
  Bytes memory = 32_MiB;
  bool replace = false;
  bool durable = true;  ///< fsync before the folder gets its name
  OnError on_error = OnError::kStop;
  std::function<void(const PackProgress&)> on_progress;  ///< from the calling thread, each batch
  std::stop_token stop;  ///< asked for before the commit: Cancelled, and `out` is what it was
};

struct PackedSplit {
  std::string name;
  std::uint64_t rows = 0;
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;  ///< of its shards
  DatasetId id;
};

struct PackReport {
  std::vector<PackedSplit> splits;
  std::uint64_t rows = 0;
  std::uint64_t image_bytes = 0;
  std::uint64_t skipped = 0;
  std::vector<SkippedRow> first_skipped;  ///< at most 100
  Census census;                          ///< of the images that went in
  std::string left_behind;  ///< what of the old dataset could not be removed; empty: nothing
};

/// One split becomes a Dataset at `out`, several a DatasetDict. On any error `out` is what it was.
Result<PackReport> Pack(FileSystem& files, PackInput& input, const std::string& out,
                        const PackOptions& options);

}  // namespace muster::data
