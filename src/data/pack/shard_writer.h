#pragma once
// Writes one shard, its checksums and its row index: NAME.part first, so that no half shard ever
// has a shard's name. The digest and the part CRCs are taken from the bytes on their way out. One
// thread.

#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/result.h"
#include "data/arrow/type.h"
#include "data/layout/manifest.h"
#include "data/pack/row_columns.h"

namespace muster::data {

class ShardWriter {
 public:
  /// `path` without ".part"; the file must not exist.
  static Result<std::unique_ptr<ShardWriter>> Create(FileSystem& files, const std::string& path,
                                                     const arrow::Schema& schema);

  Status Append(const RowColumns::Body& body);
  std::uint64_t bytes() const { return written_ + buffer_.size(); }
  std::uint64_t rows() const { return entry_.rows; }

  struct Finished {
    ShardEntry entry;              ///< its name still empty: that depends on how many there will be
    std::vector<std::byte> index;  ///< the whole row index file
  };
  /// Ends the stream; `durable`: and syncs it.
  Result<Finished> Finish(bool durable);

 private:
  explicit ShardWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  Status Write(ByteSpan data);
  Status Flush();
  void Account(ByteSpan data);

  std::unique_ptr<WritableFile> file_;
  std::vector<std::byte> buffer_;
  std::uint64_t written_ = 0;  ///< behind the buffer
  StreamDigest digest_;
  std::uint64_t part_filled_ = 0;
  std::uint32_t part_crc_ = 0;
  ShardEntry entry_;
  std::vector<std::byte> index_;
};

}  // namespace muster::data
