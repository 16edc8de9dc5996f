#pragma once
// One split as files: which shards, where their batches are, the checksums when there is a
// manifest. Opening reads the JSON files, the manifest and the size of every shard; a shard is
// mapped on first use. Without a manifest the batches are found by walking the shards' message
// heads. Any column layout; Dataset puts images on top.
//
// Immutable but for the lazy maps, which are guarded; any thread.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/arrow/decode.h"
#include "data/dataset_id.h"
#include "data/layout/find_splits.h"
#include "data/layout/hf_json.h"
#include "data/layout/manifest.h"
#include "data/layout/mapped_file.h"

namespace muster::data {

class SplitFolder {
 public:
  /// With kKeep a damage is no error but named by DamageOf and Findings, as long as anything is
  /// left to look at: a damaged manifest leaves the structure of the shards that state.json lists,
  /// a damaged state.json leaves those of the manifest.
  static Result<std::unique_ptr<SplitFolder>> Open(const SplitPlace& place,
                                                   OnDamage damage = OnDamage::kRefuse);
  ~SplitFolder();

  const SplitPlace& place() const { return place_; }
  const DatasetId& id() const { return id_; }
  bool has_manifest() const { return has_manifest_; }
  /// A manifest is there and cannot be used: Findings says why.
  bool lost_manifest() const { return lost_manifest_; }
  const std::vector<ShardEntry>& shards() const { return manifest_.shards; }
  const Manifest& manifest() const { return manifest_; }
  const Features& features() const { return features_; }
  /// Of the first shard whose checksums say that it is what was packed, else of the first; every
  /// shard is held against it when it is mapped.
  const arrow::Schema& schema() const { return schema_; }
  /// False when no shard has one, or none that is known to be right, which only kKeep lets pass:
  /// no other file is to be judged by it then.
  bool knows_schema() const { return knows_schema_; }
  /// The shard that schema() is of.
  std::size_t schema_shard() const { return schema_shard_; }

  /// What Open found wrong with a shard, whose batches are not to be read then; null: nothing.
  const Error* DamageOf(std::size_t shard) const;
  /// What Open found wrong with the set's other files: state.json, manifest, dataset_info.json.
  const std::vector<SetFinding>& Findings() const { return findings_; }
  /// The shard's bytes, mapped on first use.
  Result<ByteSpan> Bytes(std::size_t shard) const;
  /// The entries of the shard's row index; Precondition without a manifest.
  Result<ByteSpan> RowIndex(std::size_t shard) const;
  /// The file, the shard or its row index, that has lost bytes while it was mapped, and the error;
  /// nothing while all that was read of the two came from them. To be asked after reading and
  /// before anything of it is used; over any other error, as lost bytes look like damage.
  std::optional<SetFinding> LostOf(std::size_t shard) const;
  /// The same for who does not tell the files apart.
  Status Whole(std::size_t shard) const;
  /// "train/data-00000-of-00001.arrow".
  std::string NameOf(std::size_t shard) const;
  /// "train/_muster/data-00000-of-00001.arrow.idx".
  std::string IndexNameOf(std::size_t shard) const;

 private:
  struct Lazy;
  SplitFolder() = default;
  Status ReadManifest(const State& state);
  Status FindShards(const std::vector<std::string>& files);
  Status CompareLists(const std::vector<std::string>& files) const;
  Status ReadSchema();
  struct Head {
    arrow::Schema schema;
    bool checked = false;  ///< nothing says that it is not what was packed
  };
  Result<Head> ReadHead(std::size_t shard) const;
  Status CompareSchema(std::size_t shard, const arrow::Schema& schema) const;
  bool FitsInfo() const;
  Status NobodyKnows(Features info);
  Result<arrow::StreamWalker> OpenStream(std::size_t shard, const MappedFile& file) const;
  Status ReadFeatures();
  Result<std::optional<Features>> ReadInfo() const;
  Status CheckSize(std::size_t shard) const;
  Status WalkShard(std::size_t shard);
  std::string InSplit(const std::string& name) const;
  /// Keeps the error for DamageOf, or returns it.
  Status Settle(std::size_t shard, Status status);
  /// The same for Findings.
  Status Keep(std::string_view file, Status status);

  SplitPlace place_;
  DatasetId id_;
  OnDamage damage_ = OnDamage::kRefuse;
  std::vector<std::optional<Error>> damages_;  ///< by shard
  std::vector<SetFinding> findings_;
  bool has_manifest_ = false;
  bool lost_manifest_ = false;
  bool has_schema_ = false;
  bool knows_schema_ = false;
  std::size_t schema_shard_ = 0;
  Manifest manifest_;
  Features features_;
  arrow::Schema schema_;
  std::vector<std::unique_ptr<Lazy>> lazy_;
};

}  // namespace muster::data
