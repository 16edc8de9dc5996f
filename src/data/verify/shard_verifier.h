#pragma once
// Reads one shard and its row index and holds each byte against what is recorded of it. Every
// finding names the file that is wrong: where the shard and its index disagree, the batch's two
// CRCs in the manifest say which of them is not what was packed. One thread; nothing is changed.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "data/arrow/decode.h"
#include "data/layout/image_columns.h"
#include "data/layout/split_folder.h"
#include "data/verify/verify.h"

namespace muster::data {

class ShardVerifier {
 public:
  /// `report` counts this shard alone; `on_read` is told of the bytes as they are read.
  ShardVerifier(const SplitFolder& split, std::size_t shard, VerifyReport& report,
                std::function<void(std::uint64_t bytes)> on_read);
  void Run();

 private:
  const ShardEntry& entry() const { return split_.shards()[shard_]; }
  /// A finding in the shard itself.
  void Add(std::int64_t batch, std::int64_t row, std::string what);
  void AddToIndex(std::int64_t batch, std::int64_t row, std::string what);
  Result<std::vector<std::size_t>> BadParts();
  Result<ByteSpan> ReadAt(int fd, std::uint64_t offset, std::uint64_t want);
  void CheckStream();
  ByteSpan OpenIndex();
  /// Does a piece of the work; false when a file lost bytes meanwhile: what was found in the piece
  /// is taken back then, and the loss told instead.
  bool Whole(const std::function<void()>& piece);
  void CheckWalk(arrow::StreamWalker& walker);
  void CheckBatch(std::size_t b, ByteSpan file, ByteSpan index);
  void CheckLabel(std::int64_t batch, const arrow::BatchView& view, std::int64_t row);
  void CheckRow(std::int64_t batch, std::int64_t row, ByteSpan image, ByteSpan body,
                ByteSpan index);

  const SplitFolder& split_;
  const std::size_t shard_;
  VerifyReport& report_;
  const std::function<void(std::uint64_t bytes)> on_read_;
  arrow::Schema schema_;  ///< its own: that of another shard may be the damaged one
  std::optional<ImageColumns> columns_;
  bool shard_is_whole_ = true;  ///< nothing was found in the shard's own file
  bool frame_is_whole_ = true;  ///< of the batch that is looked at: its offsets are what was packed
  std::vector<std::byte> buffer_;
};

}  // namespace muster::data
