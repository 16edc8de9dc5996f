#pragma once
// Writes one split's folder: shards cut by size, then row indexes, manifest and HF's JSON,
// state.json last. One thread.

#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/result.h"
#include "data/pack/packer.h"
#include "data/pack/shard_writer.h"

namespace muster::data {

/// A whole small file; `durable`: and synced.
Status PutFile(FileSystem& files, const std::string& path, ByteSpan content, bool durable);

class SplitWriter {
 public:
  struct Options {
    std::string split;
    std::vector<std::string> label_names;
    std::uint64_t shard_bytes = 0;
    bool durable = true;
  };
  /// `folder` exists and is empty.
  SplitWriter(FileSystem& files, std::string folder, Options options);

  Status Append(const RowColumns::Body& body);
  /// Precondition when the split has no rows.
  Result<PackedSplit> Finish();

 private:
  Status FinishShard();
  std::string PartPath(std::size_t shard) const;
  Status NameShards();
  Status WriteJson(const Manifest& manifest);
  Status PutFile(const std::string& name, ByteSpan content);

  FileSystem& files_;
  std::string folder_;
  Options options_;
  arrow::Schema schema_;
  std::unique_ptr<ShardWriter> shard_;
  Manifest manifest_;
};

}  // namespace muster::data
