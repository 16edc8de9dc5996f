#pragma once
// Reads all of a split and holds it against everything that is recorded: part CRCs and the digest
// of each shard, the frames, each batch's CRC, each row's CRC, the row index, dataset_info.json,
// and what a reader would refuse: labels that the set's own class names do not reach, rows without
// an image. Goes on behind the first damage, so that the report counts all of it and names the
// first places by file, batch and row. Without a manifest the structure and the images' headers are
// checked. Reads with read(2) first, then through the map.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset_id.h"
#include "data/layout/split_folder.h"

namespace muster::data {

struct Damage {
  std::string file;
  std::int64_t batch = -1;  ///< −1: not in a batch
  std::int64_t row = -1;    ///< in the batch; −1: not one row's
  std::string what;
  /// "train/data-00000-of-00001.arrow, batch 3, row 17: …"; a sentence that names the file stands
  /// for itself.
  std::string ToString() const;
};

/// How much there is of something.
struct Extent {
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
};

struct VerifyReport {
  std::string split;
  DatasetId id;
  bool opened = false;  ///< false: the split could not even be opened, and only that was found
  bool has_checksums = false;
  bool lost_checksums = false;  ///< a manifest is there and cannot be used
  std::uint64_t shards = 0;
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  Extent recorded;  ///< what there ought to be of the three, where it is known; else what there is
  std::uint64_t damages = 0;
  std::uint64_t unlabelled = 0;  ///< rows whose label is null or −1: nothing is wrong with them
  /// Rows without an image in a set that has no manifest: its writer left them so, and nothing is
  /// wrong with them, though no training takes them.
  std::uint64_t without_image = 0;
  /// Why something could not be looked at, which says nothing about its bytes: no permission, a
  /// later format, no memory. Each names its file. Not counted in `damages`; at most 100.
  std::vector<Error> unread;
  std::vector<Damage> first;  ///< at most 100

  void Add(Damage damage);
  /// A damage of the file, or why it could not be looked at.
  void AddError(const std::string& file, std::int64_t batch, const Error& error);
};

struct VerifyOptions {
  unsigned threads = 1;  ///< a shard each; 1: the caller's own
  /// Bytes that were read, and of all splits together; one call at a time, from any thread.
  std::function<void(std::uint64_t done, std::uint64_t all)> on_progress;
};

/// A report for each place, in order; the same for any number of threads. An error only when no
/// thread can be started.
Result<std::vector<VerifyReport>> VerifySplits(const std::vector<SplitPlace>& places,
                                               const VerifyOptions& options = {});
VerifyReport VerifySplit(const SplitPlace& place);

}  // namespace muster::data
