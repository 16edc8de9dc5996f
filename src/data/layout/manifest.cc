#include "data/layout/manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"
#include "data/layout/little_endian.h"

namespace muster::data {
namespace {

constexpr std::string_view kMagic = "MUSTERMF";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 56;
constexpr std::size_t kCrcAt = 52;
constexpr std::size_t kBatchBytes = 40;
constexpr std::size_t kMaxColumnName = 1024;

Error Damaged(std::string_view what) {
  return Error(Code::kDataLoss, fmt::format("the manifest is damaged: {}", what),
               "pack the set again, or delete _muster to read it without checksums");
}

void PutText(std::vector<std::byte>& out, std::string_view text) {
  Put(out, static_cast<std::uint32_t>(text.size()));
  PutBytes(out, AsBytes(text));
}

void PutShard(std::vector<std::byte>& out, const ShardEntry& shard) {
  PutText(out, shard.name);
  Put(out, shard.bytes);
  Put(out, shard.rows);
  PutBytes(out, std::as_bytes(std::span(shard.digest)));
  Put(out, static_cast<std::uint32_t>(shard.part_crcs.size()));
  Put(out, static_cast<std::uint32_t>(shard.batches.size()));
  for (const std::uint32_t crc : shard.part_crcs) Put(out, crc);
  for (const BatchEntry& batch : shard.batches) {
    Put(out, batch.frame.offset);
    Put(out, batch.frame.metadata_length);
    Put(out, batch.frame.body_length);
    Put(out, batch.frame.rows);
    Put(out, batch.frame_crc);
    Put(out, batch.index_crc);
  }
}

std::string TakeText(LittleReader& reader, std::size_t limit) {
  const auto size = reader.Take<std::uint32_t>();
  if (size > limit) {
    [[maybe_unused]] const ByteSpan none = reader.TakeBytes(~0ull);  // no longer ok
    return {};
  }
  return std::string(AsText(reader.TakeBytes(size)));
}

/// Frames follow each other and stay inside the shard, and their rows add up.
Status CheckFrames(const ShardEntry& shard) {
  std::uint64_t end = 0, rows = 0;
  for (const BatchEntry& batch : shard.batches) {
    const arrow::BatchFrame& frame = batch.frame;
    const bool ordered = frame.offset >= end && frame.offset <= shard.bytes &&
                         frame.metadata_length <= shard.bytes - frame.offset &&
                         frame.body_length <= shard.bytes - frame.body_offset();
    if (!ordered || frame.rows > shard.rows - rows) {
      return Damaged(
          fmt::format("{}: the batch at byte {} does not fit", shard.name, frame.offset));
    }
    end = frame.end();
    rows += frame.rows;
  }
  if (rows != shard.rows) {
    return Damaged(
        fmt::format("{}: {} rows in the batches, {} recorded", shard.name, rows, shard.rows));
  }
  return Ok();
}

Result<ShardEntry> TakeShard(LittleReader& reader) {
  ShardEntry shard;
  shard.name = TakeText(reader, 255);
  shard.bytes = reader.Take<std::uint64_t>();
  shard.rows = reader.Take<std::uint64_t>();
  const ByteSpan digest = reader.TakeBytes(shard.digest.size());
  const auto parts = reader.Take<std::uint32_t>();
  const auto batches = reader.Take<std::uint32_t>();
  if (!reader.ok() || parts > reader.left() / 4 || batches > reader.left() / kBatchBytes) {
    return Damaged("it ends too early");
  }
  if (!IsPlainName(shard.name)) return Damaged("a shard's name leaves the folder");
  std::memcpy(shard.digest.data(), digest.data(), digest.size());
  for (std::uint32_t i = 0; i < parts; ++i) shard.part_crcs.push_back(reader.Take<std::uint32_t>());
  for (std::uint32_t i = 0; i < batches; ++i) {
    BatchEntry batch;
    batch.frame.offset = reader.Take<std::uint64_t>();
    batch.frame.metadata_length = reader.Take<std::uint64_t>();
    batch.frame.body_length = reader.Take<std::uint64_t>();
    batch.frame.rows = reader.Take<std::uint64_t>();
    batch.frame_crc = reader.Take<std::uint32_t>();
    batch.index_crc = reader.Take<std::uint32_t>();
    shard.batches.push_back(batch);
  }
  if (!reader.ok()) return Damaged("it ends too early");
  if (parts != shard.bytes / kPartBytes + (shard.bytes % kPartBytes != 0)) {
    return Damaged(
        fmt::format("{}: {} part checksums for {} bytes", shard.name, parts, shard.bytes));
  }
  MUSTER_TRY(CheckFrames(shard));
  return shard;
}

std::uint32_t CrcOf(ByteSpan bytes) {
  const std::vector<std::byte> zero(4);
  return Crc32c(bytes.subspan(kHeaderBytes), Crc32c(zero, Crc32c(bytes.first(kCrcAt))));
}

/// Whether nothing but the version differs from what this program writes.
bool HoldsAsOurs(ByteSpan bytes) {
  std::vector<std::byte> ours(bytes.begin(), bytes.end());
  std::vector<std::byte> version;
  Put(version, kVersion);
  std::ranges::copy(version, ours.begin() + kMagic.size());
  return LoadLittle<std::uint32_t>(ours.data() + kCrcAt) == CrcOf(ours);
}

}  // namespace

bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

DatasetId Manifest::Id() const {
  StreamDigest root;
  root.Add(AsBytes("muster dataset 1"));
  for (const ShardEntry& shard : shards) {
    std::vector<std::byte> record;
    Put(record, shard.bytes);
    Put(record, shard.rows);
    PutBytes(record, std::as_bytes(std::span(shard.digest)));
    root.Add(record);
  }
  return {root.Finish()};
}

std::vector<std::byte> EncodeManifest(const Manifest& manifest) {
  std::uint64_t rows = 0;
  for (const ShardEntry& shard : manifest.shards) rows += shard.rows;
  std::vector<std::byte> out;
  PutBytes(out, AsBytes(kMagic));
  Put(out, kVersion);
  Put(out, static_cast<std::uint32_t>(manifest.shards.size()));
  Put(out, rows);
  const DatasetId id = manifest.Id();
  PutBytes(out, std::as_bytes(std::span(id.bytes)));
  Put(out, kPartBytes);
  Put(out, std::uint32_t{0});
  Put(out, std::uint32_t{0});  // the CRC, once the rest stands
  MUSTER_CHECK(out.size() == kHeaderBytes);
  PutText(out, manifest.main_column);
  for (const ShardEntry& shard : manifest.shards) PutShard(out, shard);
  std::vector<std::byte> crc;
  Put(crc, CrcOf(out));
  std::copy(crc.begin(), crc.end(), out.begin() + kCrcAt);
  return out;
}

Result<Manifest> DecodeManifest(ByteSpan bytes) {
  if (bytes.size() < kHeaderBytes) return Damaged(fmt::format("{} bytes", bytes.size()));
  LittleReader reader(bytes);
  if (AsText(reader.TakeBytes(kMagic.size())) != kMagic) return Damaged("it has another magic");
  if (const auto version = reader.Take<std::uint32_t>(); version != kVersion) {
    if (HoldsAsOurs(bytes)) {
      return Damaged(fmt::format("it says version {}, and its checksum is that of version {}",
                                 version, kVersion));
    }
    return Error(
        Code::kPrecondition,
        fmt::format("the manifest has version {}, this program reads {}", version, kVersion),
        "use the version of Muster that packed the set, or a later one");
  }
  const auto shards = reader.Take<std::uint32_t>();
  const auto rows = reader.Take<std::uint64_t>();
  const ByteSpan id = reader.TakeBytes(16);
  const auto part_bytes = reader.Take<std::uint64_t>();
  const auto reserved = reader.Take<std::uint32_t>();
  if (reader.Take<std::uint32_t>() != CrcOf(bytes)) return Damaged("its checksum does not match");
  if (part_bytes != kPartBytes || reserved != 0) return Damaged("unknown part size");
  Manifest manifest;
  manifest.main_column = TakeText(reader, kMaxColumnName);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < shards; ++i) {
    manifest.shards.push_back(MUSTER_TRY(TakeShard(reader)));
    if (__builtin_add_overflow(sum, manifest.shards.back().rows, &sum))
      return Damaged("row counts");
  }
  if (!reader.ok() || reader.left() != 0 || sum != rows) return Damaged("its counts do not add up");
  if (std::memcmp(manifest.Id().bytes.data(), id.data(), id.size()) != 0) {
    return Damaged("the dataset id is not that of its shards");
  }
  return manifest;
}

}  // namespace muster::data
