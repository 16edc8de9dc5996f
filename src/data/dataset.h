#pragma once
// One split of a packed image dataset, mapped read-only: rows are views into the files, nothing is
// copied. Opens what `muster data pack` wrote and what HF's save_to_disk wrote (there the batches
// are found by walking the headers, and there are no row checksums).
//
// Global row numbers run from 0 to rows() − 1 over the shards in order; they are the sample ids of
// the loader. With a manifest, what a row's meaning depends on is checked before it is handed out:
// the batch's frame (offsets, labels, paths) on first touch, the image's CRC32C on every read. A
// failure is DataLoss and names file, batch and row.
//
// Immutable; all methods from any thread. Views live as long as the Dataset. A file that is cut, or
// whose disk fails, while the set is open shows zeros where its bytes were: CheckRead tells.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "data/dataset_id.h"

namespace muster::data {

struct OpenOptions {
  /// "train", "test", …: the split of that name and no other. Empty: the folder is a split itself,
  /// named or not, or holds exactly one.
  std::string split;
};

struct RowView {
  ByteSpan image;           ///< the encoded file: PNG or JPEG
  std::string_view path;    ///< the file's base name; empty when the set keeps none
  std::int64_t label = -1;  ///< index into label_names(); −1 when the set has no label column
  std::string_view source;  ///< where it was packed from; empty in foreign sets
};

/// One Arrow file of the split, as `ls` shows it.
struct ShardInfo {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t rows = 0;
  std::uint64_t batches = 0;
};

class Dataset {
 public:
  /// NotFound when the folder or split is absent, Precondition when the set is unfinished (no
  /// state.json) or in a format that we do not read, DataLoss when files are damaged or disagree
  /// with each other, Invalid when there are several splits and none is named.
  static Result<std::shared_ptr<const Dataset>> Open(const std::string& path,
                                                     const OpenOptions& options = {});
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  virtual const DatasetId& id() const = 0;
  virtual std::uint64_t rows() const = 0;
  /// The names of the classes in the order of their numbers; empty when the set has none.
  virtual const std::vector<std::string>& label_names() const = 0;
  virtual const std::vector<ShardInfo>& shards() const = 0;
  /// First global row of each shard, and rows() at the end: shards().size() + 1 numbers.
  virtual std::span<const std::uint64_t> shard_first_rows() const = 0;
  /// Whether every read is checked against recorded CRCs.
  virtual bool has_checksums() const = 0;

  /// O(1) in the number of rows; row < rows().
  virtual Result<RowView> Read(std::uint64_t row) const = 0;
  /// Ok when what was read through the views of these rows up to now was in the files. To be asked
  /// once the views were read, a batch at a time, before anything of it is used; its error goes
  /// over any other, as bytes that are gone look like damage. A look at each shard, no system call.
  virtual Status CheckRead(std::span<const std::uint64_t> rows) const = 0;
  /// "train/data-00000-of-00002.arrow, batch 3, row 17", for messages.
  virtual std::string Where(std::uint64_t row) const = 0;

 protected:
  Dataset() = default;
};

}  // namespace muster::data
