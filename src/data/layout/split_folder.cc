#include "data/layout/split_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>

#include "base/file_system.h"
#include "base/mutex.h"
#include "data/layout/little_endian.h"
#include "data/layout/row_index.h"

namespace muster::data {
namespace {

constexpr Bytes kMaxJson = 64_MiB;
constexpr Bytes kMaxManifest = 2_GiB;

Result<std::string> ReadText(const std::string& path) {
  return PosixFiles().ReadAll(path, kMaxJson);
}

/// Whether a file or link has this name; who may not look does not learn that it is absent.
Result<bool> IsThere(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return ErrnoError("open " + path, errno);
}

/// A folder of ours that lost its manifest must not pass for a set that never had checksums.
Result<bool> HasManifest(const std::string& folder) {
  const std::string ours = folder + "/_muster";
  if (MUSTER_TRY(IsThere(ours + "/manifest"))) return true;
  if (!MUSTER_TRY(IsThere(ours))) return false;
  return Error(Code::kDataLoss, ours + " has no manifest, so no checksum can be checked",
               "copy or pack the set again, or delete _muster to read it without checksums");
}

/// A message that a user can act on when there is no state.json.
Error NotASplit(const std::string& folder) {
  const auto names = PosixFiles().List(folder);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (name.ends_with(".arrow") || name.ends_with(".part")) {
      return Error(
          Code::kPrecondition,
          fmt::format("{} is an unfinished dataset: it has {} but no state.json", folder, name),
          "pack it again; a finished set gets its state.json last");
    }
  }
  return Error(Code::kInvalid,
               fmt::format("{} is not a dataset: no state.json, no dataset_dict.json", folder),
               "make one with: muster data pack INPUT " + folder);
}

/// Without a manifest: what identifies the rows short of reading them.
DatasetId WalkedId(const std::vector<ShardEntry>& shards) {
  StreamDigest digest;
  digest.Add(AsBytes("muster walked dataset 1"));
  for (const ShardEntry& shard : shards) {
    std::vector<std::byte> record;
    Put(record, static_cast<std::uint64_t>(shard.name.size()));
    PutBytes(record, AsBytes(shard.name));
    Put(record, shard.bytes);
    for (const BatchEntry& batch : shard.batches) {
      Put(record, batch.frame.offset);
      Put(record, batch.frame.rows);
    }
    digest.Add(record);
  }
  return {digest.Finish()};
}

Result<ShardEntry> Walk(ByteSpan file, const std::string& name) {
  ShardEntry shard{.name = name, .bytes = file.size()};
  auto walker = MUSTER_TRY(arrow::StreamWalker::Open(file));
  for (;;) {
    const auto frame = MUSTER_TRY(walker.Next());
    if (!frame) return shard;
    shard.rows += frame->rows;
    shard.batches.push_back({.frame = *frame});
  }
}

}  // namespace

struct SplitFolder::Lazy {
  Mutex mutex;
  std::optional<MappedFile> file MUSTER_GUARDED_BY(mutex);
  std::optional<MappedFile> index MUSTER_GUARDED_BY(mutex);
};

SplitFolder::~SplitFolder() = default;

Result<std::vector<SplitPlace>> FindSplits(const std::string& path) {
  if (!MUSTER_TRY(IsThere(path))) {
    return Error(Code::kNotFound, fmt::format("no dataset at {}", path),
                 "look at the name; 'muster data pack' makes one");
  }
  const std::string dict = path + "/dataset_dict.json";
  std::vector<SplitPlace> places;
  if (MUSTER_TRY(IsThere(dict))) {
    for (const std::string& split :
         MUSTER_TRY(Within(dict, ParseDatasetDict(MUSTER_TRY(ReadText(dict)))))) {
      places.push_back({split, path + "/" + split});
    }
    return places;
  }
  const std::string state = path + "/state.json";
  if (!MUSTER_TRY(IsThere(state))) return NotASplit(path);
  const State parsed = MUSTER_TRY(Within(state, ParseState(MUSTER_TRY(ReadText(state)))));
  places.push_back({parsed.split, path});
  return places;
}

Result<std::unique_ptr<SplitFolder>> SplitFolder::Open(const SplitPlace& place, Damage damage) {
  std::unique_ptr<SplitFolder> split(new SplitFolder);
  split->damage_ = damage;
  split->place_ = place;
  const std::string state_path = place.folder + "/state.json";
  if (!MUSTER_TRY(IsThere(state_path))) return NotASplit(place.folder);
  const State state = MUSTER_TRY(Within(state_path, ParseState(MUSTER_TRY(ReadText(state_path)))));
  if (state.files.empty()) {
    return Error(Code::kInvalid, state_path + " lists no data files");
  }
  for (std::size_t i = 0; i < state.files.size(); ++i) {
    split->lazy_.push_back(std::make_unique<Lazy>());
  }
  split->damages_.resize(state.files.size());
  split->has_manifest_ = MUSTER_TRY(HasManifest(place.folder));
  MUSTER_TRY(split->has_manifest_ ? split->ReadManifest(state.files)
                                  : split->WalkShards(state.files));
  split->id_ = split->has_manifest_ ? split->manifest_.Id() : WalkedId(split->manifest_.shards);
  MUSTER_TRY(split->ReadFeatures());
  return split;
}

Status SplitFolder::ReadManifest(const std::vector<std::string>& files) {
  const std::string path = place_.folder + "/_muster/manifest";
  const std::string bytes = MUSTER_TRY(PosixFiles().ReadAll(path, kMaxManifest));
  manifest_ = MUSTER_TRY(Within(path, DecodeManifest(AsBytes(bytes))));
  if (manifest_.shards.size() != files.size()) {
    return Error(Code::kDataLoss, fmt::format("{}: {} shards, state.json lists {}", path,
                                              manifest_.shards.size(), files.size()));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (manifest_.shards[i].name != files[i]) {
      return Error(Code::kDataLoss, fmt::format("{}: shard {} is {}, state.json says {}", path, i,
                                                manifest_.shards[i].name, files[i]));
    }
  }
  MUSTER_TRY(CheckSizes());
  return ReadSchema();
}

/// From the first shard that has one.
Status SplitFolder::ReadSchema() {
  for (std::size_t i = 0; i < manifest_.shards.size(); ++i) {
    if (damages_[i]) continue;
    const auto read = [&]() -> Status {
      const std::string path = place_.folder + "/" + manifest_.shards[i].name;
      const MappedFile file = MUSTER_TRY(MappedFile::Open(path));
      schema_ = MUSTER_TRY(Within(NameOf(i), arrow::StreamWalker::Open(file.bytes()))).schema();
      return Ok();
    }();
    if (read) return Ok();
    MUSTER_TRY(Settle(i, read));
  }
  return *damages_[0];
}

Status SplitFolder::Settle(std::size_t shard, Status status) {
  if (status || damage_ == Damage::kRefuse) return status;
  damages_[shard] = std::move(status).error();
  return Ok();
}

const Error* SplitFolder::DamageOf(std::size_t shard) const {
  return damages_[shard] ? &*damages_[shard] : nullptr;
}

Status SplitFolder::CheckSizes() {
  for (std::size_t i = 0; i < manifest_.shards.size(); ++i) MUSTER_TRY(Settle(i, CheckSize(i)));
  return Ok();
}

Status SplitFolder::CheckSize(std::size_t i) const {
  const ShardEntry& shard = manifest_.shards[i];
  const std::string path = place_.folder + "/" + shard.name;
  struct stat info{};
  if (::stat(path.c_str(), &info) < 0) {
    return ErrnoError("stat " + path, errno).Hint("the shard is listed in the manifest");
  }
  if (static_cast<std::uint64_t>(info.st_size) == shard.bytes) return Ok();
  return Error(
      Code::kDataLoss,
      fmt::format("{} has {} bytes, the manifest says {}", NameOf(i), info.st_size, shard.bytes),
      "copy or pack the set again");
}

Status SplitFolder::WalkShards(const std::vector<std::string>& files) {
  for (const std::string& name : files) manifest_.shards.push_back({.name = name});
  MUSTER_TRY(ReadSchema());
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!damages_[i]) MUSTER_TRY(Settle(i, WalkShard(i)));
  }
  return Ok();
}

Status SplitFolder::WalkShard(std::size_t shard) {
  const ByteSpan file = MUSTER_TRY(Bytes(shard));
  const std::string name = manifest_.shards[shard].name;
  manifest_.shards[shard] = MUSTER_TRY(Within(NameOf(shard), Walk(file, name)));
  return Ok();
}

Status SplitFolder::ReadFeatures() {
  const auto metadata = schema_.Metadata("huggingface");
  const auto inside = metadata.empty() ? std::optional<Result<Features>>()
                                       : std::optional(ParseSchemaMetadata(metadata));
  const bool known = inside && *inside;
  if (known) features_ = **inside;
  auto info = ReadInfo();
  if (!info && damage_ == Damage::kKeep) {
    info_damage_ = std::move(info).error();
    return Ok();
  }
  if (!info) return std::move(info).error();
  if (!*info) return Ok();
  if (!known) {
    features_ = **std::move(info);
    return Ok();
  }
  if (**info == features_) return Ok();
  Error differs(Code::kDataLoss,
                place_.folder + "/dataset_info.json names other columns or classes than the shards",
                "copy or pack the set again");
  if (damage_ == Damage::kRefuse) return differs;
  info_damage_ = std::move(differs);
  return Ok();
}

/// What dataset_info.json says; nothing when it tells of no features, as of a set saved without
/// any: its rows are still there.
Result<std::optional<Features>> SplitFolder::ReadInfo() const {
  constexpr std::string_view kHint =
      "Hugging Face datasets cannot open the set; copy or pack it again";
  const std::string path = place_.folder + "/dataset_info.json";
  if (!MUSTER_TRY(IsThere(path))) {
    return Error(Code::kDataLoss, path + " is gone", std::string(kHint));
  }
  const std::string text = MUSTER_TRY(ReadText(path));
  auto parsed = ParseDatasetInfo(text);
  if (parsed) return std::optional(*std::move(parsed));
  if (parsed.error().code() == Code::kInvalid && !has_manifest_) return std::optional<Features>();
  return Error(Code::kDataLoss, path + ": " + parsed.error().message(), std::string(kHint));
}

Result<ByteSpan> SplitFolder::Bytes(std::size_t shard) const {
  Lazy& lazy = *lazy_[shard];
  const MutexLock lock(lazy.mutex);
  if (lazy.file) return lazy.file->bytes();
  const ShardEntry& entry = manifest_.shards[shard];
  MappedFile file = MUSTER_TRY(MappedFile::Open(place_.folder + "/" + entry.name));
  if (has_manifest_ && file.bytes().size() != entry.bytes) {
    return Error(Code::kDataLoss, fmt::format("{} has {} bytes, the manifest says {}",
                                              NameOf(shard), file.bytes().size(), entry.bytes));
  }
  const auto walker = MUSTER_TRY(Within(NameOf(shard), arrow::StreamWalker::Open(file.bytes())));
  if (walker.schema().fields != schema_.fields) {
    return Error(Code::kInvalid, NameOf(shard) + " has other columns than the first shard");
  }
  lazy.file = std::move(file);
  return lazy.file->bytes();
}

Result<ByteSpan> SplitFolder::RowIndex(std::size_t shard) const {
  if (!has_manifest_) return Error(Code::kPrecondition, "the set has no manifest");
  Lazy& lazy = *lazy_[shard];
  const MutexLock lock(lazy.mutex);
  const ShardEntry& entry = manifest_.shards[shard];
  const std::string path = place_.folder + "/_muster/" + entry.name + ".idx";
  if (!lazy.index) lazy.index = MUSTER_TRY(MappedFile::Open(path));
  return Within(path, RowEntries(lazy.index->bytes(), entry.rows));
}

std::string SplitFolder::NameOf(std::size_t shard) const {
  const std::string& name = manifest_.shards[shard].name;
  return place_.name.empty() ? name : place_.name + "/" + name;
}

}  // namespace muster::data
