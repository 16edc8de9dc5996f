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
#include "data/layout/hf_json.h"
#include "data/layout/manifest.h"
#include "data/layout/mapped_file.h"

namespace muster::data {

struct SplitPlace {
  std::string name;    ///< "train"; empty when nothing says
  std::string folder;  ///< where state.json is
};

/// The splits of a DatasetDict, or the one split that the folder is. NotFound, Precondition when
/// unfinished, Invalid when it is something else.
Result<std::vector<SplitPlace>> FindSplits(const std::string& path);

class SplitFolder {
 public:
  enum class Damage {
    kRefuse,  ///< a shard that is gone, has another size or cannot be walked fails Open, as does
              ///< a dataset_info.json that is gone, damaged or says something else than the shards
    kKeep,    ///< DamageOf and InfoDamage name it, for who looks at all of them; one shard at least
              ///< is whole
  };
  static Result<std::unique_ptr<SplitFolder>> Open(const SplitPlace& place,
                                                   Damage damage = Damage::kRefuse);
  ~SplitFolder();

  const SplitPlace& place() const { return place_; }
  const DatasetId& id() const { return id_; }
  bool has_manifest() const { return has_manifest_; }
  const std::vector<ShardEntry>& shards() const { return manifest_.shards; }
  const Manifest& manifest() const { return manifest_; }
  const Features& features() const { return features_; }
  /// Of the first whole shard; every shard is held against it when it is mapped.
  const arrow::Schema& schema() const { return schema_; }

  /// What Open found wrong with a shard, whose batches are not to be read then; null: nothing.
  const Error* DamageOf(std::size_t shard) const;
  /// What Open found wrong with dataset_info.json; null: nothing.
  const Error* InfoDamage() const { return info_damage_ ? &*info_damage_ : nullptr; }
  /// The shard's bytes, mapped on first use.
  Result<ByteSpan> Bytes(std::size_t shard) const;
  /// The entries of the shard's row index; Precondition without a manifest.
  Result<ByteSpan> RowIndex(std::size_t shard) const;
  /// "train/data-00000-of-00001.arrow".
  std::string NameOf(std::size_t shard) const;

 private:
  struct Lazy;
  SplitFolder() = default;
  Status ReadManifest(const std::vector<std::string>& files);
  Status WalkShards(const std::vector<std::string>& files);
  Status ReadSchema();
  Status ReadFeatures();
  Result<std::optional<Features>> ReadInfo() const;
  Status CheckSizes();
  Status CheckSize(std::size_t shard) const;
  Status WalkShard(std::size_t shard);
  /// Keeps the error for DamageOf, or returns it.
  Status Settle(std::size_t shard, Status status);

  SplitPlace place_;
  DatasetId id_;
  Damage damage_ = Damage::kRefuse;
  std::vector<std::optional<Error>> damages_;  ///< by shard
  std::optional<Error> info_damage_;
  bool has_manifest_ = false;
  Manifest manifest_;
  Features features_;
  arrow::Schema schema_;
  std::vector<std::unique_ptr<Lazy>> lazy_;
};

}  // namespace muster::data
