#include "data/layout/split_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>

#include "base/crc32c.h"
#include "base/file_system.h"
#include "base/mutex.h"
#include "base/text.h"
#include "data/layout/hf_check.h"
#include "data/layout/little_endian.h"
#include "data/layout/row_index.h"

namespace muster::data {
namespace {

constexpr Bytes kMaxManifest = 2_GiB;

/// A folder of ours that lost its manifest must not pass for a set that never had checksums.
Result<bool> HasManifest(const std::string& folder) {
  const std::string ours = folder + "/_muster";
  if (MUSTER_TRY(IsThere(ours + "/manifest"))) return true;
  if (!MUSTER_TRY(IsThere(ours))) return false;
  return Error(Code::kDataLoss, ours + " has no manifest, so no checksum can be checked",
               "copy or pack the set again, or delete _muster to read it without checksums");
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

/// Whether both say which columns and classes they have, and do not say the same.
bool NamesOthers(const arrow::Schema& first, const arrow::Schema& other) {
  const std::string_view mine = first.Metadata("huggingface");
  const std::string_view theirs = other.Metadata("huggingface");
  if (mine == theirs || mine.empty() || theirs.empty()) return false;
  const auto said = ParseSchemaMetadata(mine);
  const auto says = ParseSchemaMetadata(theirs);
  return said && says && *said != *says;
}

/// Whether the parts of the file up to `end` have their checksums.
bool PartsHold(const ShardEntry& shard, ByteSpan file, std::uint64_t end) {
  if (file.size() != shard.bytes) return false;
  for (std::size_t part = 0; part * kPartBytes < end; ++part) {
    const std::uint64_t at = part * kPartBytes;
    const std::uint64_t size = std::min<std::uint64_t>(kPartBytes, file.size() - at);
    if (Crc32c(file.subspan(at, size)) != shard.part_crcs[part]) return false;
  }
  return true;
}

/// A manifest whose own checksum holds, and that nothing here agrees with.
bool IsOfAnother(const Manifest& manifest, const State& state, const std::string& folder) {
  if (state.fingerprint.empty() || state.fingerprint == FingerprintOf(manifest)) return false;
  return std::ranges::none_of(manifest.shards, [&](const ShardEntry& shard) {
    const auto file = MappedFile::Open(folder + "/" + shard.name);
    return file && PartsHold(shard, file->bytes(), 1);
  });
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
  /// The two once they are mapped, for who asks without the lock.
  std::atomic<const MappedFile*> mapped_file = nullptr;
  std::atomic<const MappedFile*> mapped_index = nullptr;
};

SplitFolder::~SplitFolder() = default;

Result<std::unique_ptr<SplitFolder>> SplitFolder::Open(const SplitPlace& place, OnDamage damage) {
  std::unique_ptr<SplitFolder> split(new SplitFolder);
  split->damage_ = damage;
  split->place_ = place;
  auto state = ReadState(place.folder);
  if (damage == OnDamage::kRefuse && !state) return std::move(state).error();
  const Status manifest = split->ReadManifest(state ? *state : State());
  if (!manifest) MUSTER_TRY(split->Keep("_muster/manifest", manifest));
  split->lost_manifest_ = !manifest;
  // With neither a list of the shards nor checksums of them there is nothing to go on with.
  if (!state && !split->has_manifest_) return std::move(state).error();
  if (!state) MUSTER_TRY(split->Keep("state.json", Status(state.error())));
  MUSTER_TRY(split->FindShards(state ? state->files : std::vector<std::string>()));
  MUSTER_TRY(split->ReadFeatures());
  return split;
}

Status SplitFolder::ReadManifest(const State& state) {
  if (!MUSTER_TRY(HasManifest(place_.folder))) return Ok();
  const std::string path = place_.folder + "/_muster/manifest";
  const std::string bytes =
      MUSTER_TRY(OfContent(PosixFiles().ReadAll(path, kMaxManifest), Code::kDataLoss));
  Manifest manifest = MUSTER_TRY(Within(path, DecodeManifest(AsBytes(bytes))));
  if (IsOfAnother(manifest, state, place_.folder)) {
    return Error(
        Code::kDataLoss,
        fmt::format("{} is of another set: neither state.json nor any shard fits it", path),
        "copy or pack the set again, or delete _muster to read it without checksums");
  }
  manifest_ = std::move(manifest);
  has_manifest_ = true;
  return Ok();
}

/// `files`: what state.json lists; empty when it cannot be read.
Status SplitFolder::FindShards(const std::vector<std::string>& files) {
  if (has_manifest_ && !files.empty()) MUSTER_TRY(Keep("state.json", CompareLists(files)));
  if (!has_manifest_) {
    for (const std::string& name : files) manifest_.shards.push_back({.name = name});
  }
  damages_.resize(manifest_.shards.size());
  for (std::size_t i = 0; i < manifest_.shards.size(); ++i) {
    lazy_.push_back(std::make_unique<Lazy>());
    if (has_manifest_) MUSTER_TRY(Settle(i, CheckSize(i)));
  }
  MUSTER_TRY(ReadSchema());
  for (std::size_t i = 0; !has_manifest_ && i < files.size(); ++i) {
    if (!damages_[i]) MUSTER_TRY(Settle(i, WalkShard(i)));
  }
  if (has_manifest_ || !lost_manifest_) {
    id_ = has_manifest_ ? manifest_.Id() : WalkedId(manifest_.shards);
  }
  return Ok();
}

/// The manifest has a checksum of itself, so where the two differ it is the one that is right.
Status SplitFolder::CompareLists(const std::vector<std::string>& files) const {
  const std::string path = place_.folder + "/state.json";
  if (manifest_.shards.size() != files.size()) {
    return Error(Code::kDataLoss,
                 fmt::format("{} lists {}, the manifest has {}", path,
                             Counted(files.size(), "shard"), manifest_.shards.size()));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (manifest_.shards[i].name != files[i]) {
      return Error(Code::kDataLoss, fmt::format("{}: shard {} is {} in the manifest, {} here", path,
                                                i, manifest_.shards[i].name, files[i]));
    }
  }
  return Ok();
}

/// From the first shard where it is what was packed, so that no other file is held against a
/// damaged one; else from the first that has one. Where damage is kept and there is none, it stays
/// empty.
Status SplitFolder::ReadSchema() {
  for (std::size_t i = 0; i < manifest_.shards.size() && !knows_schema_; ++i) {
    if (damages_[i]) continue;
    auto head = ReadHead(i);
    if (head && (!has_schema_ || head->checked)) {
      schema_ = std::move(head->schema);
      schema_shard_ = i;
      has_schema_ = true;
      knows_schema_ = head->checked;
    }
    // Behind one that is there, what is wrong with another is for who reads that.
    if (!head && (damage_ == OnDamage::kKeep || !has_schema_)) {
      MUSTER_TRY(Settle(i, Status(std::move(head).error())));
    }
  }
  return Ok();
}

/// A set without checksums is taken at its word.
Result<SplitFolder::Head> SplitFolder::ReadHead(std::size_t shard) const {
  const ShardEntry& entry = manifest_.shards[shard];
  const MappedFile file = MUSTER_TRY(MappedFile::Open(place_.folder + "/" + entry.name));
  auto walker = OpenStream(shard, file);
  const bool checked = !has_manifest_ || (walker && PartsHold(entry, file.bytes(), walker->next()));
  MUSTER_TRY(file.Whole());
  if (!walker) return std::move(walker).error();
  return Head{.schema = walker->schema(), .checked = checked};
}

/// What a pack of ours wrote is in the format that we read, so there another one is damage.
Result<arrow::StreamWalker> SplitFolder::OpenStream(std::size_t shard,
                                                    const MappedFile& file) const {
  auto walker = Within(NameOf(shard), arrow::StreamWalker::Open(file.bytes()));
  MUSTER_TRY(file.Whole());
  if (walker || !has_manifest_) return walker;
  return Error(Code::kDataLoss, walker.error().message(), walker.error().hint());
}

Status SplitFolder::Settle(std::size_t shard, Status status) {
  if (status || damage_ == OnDamage::kRefuse) return status;
  damages_[shard] = std::move(status).error();
  return Ok();
}

Status SplitFolder::Keep(std::string_view file, Status status) {
  if (status || damage_ == OnDamage::kRefuse) return status;
  findings_.push_back({fmt::format("{}/{}", place_.folder, file), std::move(status).error()});
  return Ok();
}

const Error* SplitFolder::DamageOf(std::size_t shard) const {
  return damages_[shard] ? &*damages_[shard] : nullptr;
}

Status SplitFolder::CheckSize(std::size_t i) const {
  const ShardEntry& shard = manifest_.shards[i];
  const std::string path = place_.folder + "/" + shard.name;
  struct stat info{};
  if (::stat(path.c_str(), &info) < 0) {
    const int why = errno;
    if (why != ENOENT) return ErrnoError("stat " + path, why);
    return Error(Code::kDataLoss, path + " is gone", "the manifest lists it; copy the set again");
  }
  if (static_cast<std::uint64_t>(info.st_size) == shard.bytes) return Ok();
  return Error(
      Code::kDataLoss,
      fmt::format("{} has {} bytes, the manifest says {}", NameOf(i), info.st_size, shard.bytes),
      "copy or pack the set again");
}

Status SplitFolder::WalkShard(std::size_t shard) {
  const ByteSpan file = MUSTER_TRY(Bytes(shard));
  const std::string name = manifest_.shards[shard].name;
  auto walked = Within(NameOf(shard), Walk(file, name));
  MUSTER_TRY(Whole(shard));
  manifest_.shards[shard] = MUSTER_TRY(std::move(walked));
  return Ok();
}

Status SplitFolder::ReadFeatures() {
  const auto metadata = schema_.Metadata("huggingface");
  const auto inside = metadata.empty() ? std::optional<Result<Features>>()
                                       : std::optional(ParseSchemaMetadata(metadata));
  const bool known = inside && *inside;
  if (known) features_ = **inside;
  auto info = ReadInfo();
  if (!info) return Keep("dataset_info.json", Status(std::move(info).error()));
  if (!*info) return Ok();
  const bool differ = known && **info != features_;
  if (!knows_schema_ && (differ || !FitsInfo())) return NobodyKnows(**std::move(info));
  if (!known) {
    features_ = **std::move(info);
    return Ok();
  }
  // Who keeps damage holds every key of it against the shards (hf_check.h).
  const bool looked_at_later = damage_ == OnDamage::kKeep && has_manifest_;
  if (**info == features_ || looked_at_later) return Ok();
  return Keep(
      "dataset_info.json",
      Error(Code::kDataLoss,
            place_.folder + "/dataset_info.json names other columns or classes than the shards",
            "copy or pack the set again"));
}

/// Down to the types of the columns: rows are read by them, and their own checksums do not cover
/// them.
bool SplitFolder::FitsInfo() const {
  const auto text = ReadSetFile(place_.folder + "/dataset_info.json");
  return text && CheckDatasetInfoJson(*text, {&manifest_, &schema_}).empty() &&
         CheckDatasetInfoJson(*text, {nullptr, &schema_}).empty();
}

/// The two disagree about the columns, and no shard's checksums say that it is right.
Status SplitFolder::NobodyKnows(Features info) {
  if (damage_ == OnDamage::kRefuse) {
    return Error(Code::kDataLoss,
                 fmt::format("{} fails the CRC32C of its part with the schema, and names other "
                             "columns, types or classes than dataset_info.json",
                             NameOf(schema_shard_)),
                 "copy or pack the set again");
  }
  features_ = std::move(info);
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
  const std::string text = MUSTER_TRY(ReadSetFile(path));
  auto parsed = ParseDatasetInfo(text);
  if (parsed) return std::optional(*std::move(parsed));
  if (parsed.error().code() == Code::kPrecondition && !has_manifest_ && !lost_manifest_)
    return std::optional<Features>();
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
  const auto walker = MUSTER_TRY(OpenStream(shard, file));
  // Who keeps damage reads a shard by its own schema where no other one is known to be right.
  if (knows_schema_ || damage_ == OnDamage::kRefuse) {
    MUSTER_TRY(CompareSchema(shard, walker.schema()));
  }
  lazy.file = std::move(file);
  lazy.mapped_file.store(&*lazy.file, std::memory_order_release);
  return lazy.file->bytes();
}

Status SplitFolder::CompareSchema(std::size_t shard, const arrow::Schema& schema) const {
  const std::string other = manifest_.shards[schema_shard_].name;
  if (schema.fields != schema_.fields) {
    return Error(Code::kDataLoss,
                 fmt::format("{} has other columns than {}", NameOf(shard), other));
  }
  if (NamesOthers(schema_, schema)) {
    return Error(Code::kDataLoss,
                 fmt::format("{} names other classes than {}", NameOf(shard), other),
                 "its labels would be read wrongly; save or pack the set again");
  }
  return Ok();
}

Result<ByteSpan> SplitFolder::RowIndex(std::size_t shard) const {
  if (!has_manifest_) return Error(Code::kPrecondition, "the set has no manifest");
  Lazy& lazy = *lazy_[shard];
  const MutexLock lock(lazy.mutex);
  const ShardEntry& entry = manifest_.shards[shard];
  const std::string path = place_.folder + "/_muster/" + entry.name + ".idx";
  if (!lazy.index) {
    lazy.index = MUSTER_TRY(MappedFile::Open(path));
    lazy.mapped_index.store(&*lazy.index, std::memory_order_release);
  }
  auto entries = Within(IndexNameOf(shard), RowEntries(lazy.index->bytes(), entry.rows));
  MUSTER_TRY(lazy.index->Whole());
  return entries;
}

std::optional<SetFinding> SplitFolder::LostOf(std::size_t shard) const {
  const Lazy& lazy = *lazy_[shard];
  if (const MappedFile* file = lazy.mapped_file.load(std::memory_order_acquire)) {
    Status whole = file->Whole();
    if (!whole) return SetFinding{NameOf(shard), std::move(whole).error()};
  }
  if (const MappedFile* index = lazy.mapped_index.load(std::memory_order_acquire)) {
    Status whole = index->Whole();
    if (!whole) return SetFinding{IndexNameOf(shard), std::move(whole).error()};
  }
  return std::nullopt;
}

Status SplitFolder::Whole(std::size_t shard) const {
  auto lost = LostOf(shard);
  if (lost) return std::move(lost->error);
  return Ok();
}

std::string SplitFolder::NameOf(std::size_t shard) const {
  return InSplit(manifest_.shards[shard].name);
}

std::string SplitFolder::IndexNameOf(std::size_t shard) const {
  return InSplit("_muster/" + manifest_.shards[shard].name + ".idx");
}

std::string SplitFolder::InSplit(const std::string& name) const {
  return place_.name.empty() ? name : place_.name + "/" + name;
}

}  // namespace muster::data
