#include "data/pack/split_writer.h"

#include <fmt/format.h>

#include "base/durable.h"
#include "data/layout/hf_json.h"

namespace muster::data {

Status PutFile(FileSystem& files, const std::string& path, ByteSpan content, bool durable) {
  if (durable) return WriteDurably(files, path, content);
  const auto file = MUSTER_TRY(files.Create(path, {}));
  MUSTER_TRY(file->Write(content));
  return file->Close();
}

SplitWriter::SplitWriter(FileSystem& files, std::string folder, Options options)
    : files_(files),
      folder_(std::move(folder)),
      options_(std::move(options)),
      schema_(PackedSchema(options_.label_names)) {
  manifest_.main_column = "image.bytes";
}

std::string SplitWriter::PartPath(std::size_t shard) const {
  return fmt::format("{}/data-{:05}.arrow", folder_, shard);
}

Status SplitWriter::Append(const RowColumns::Body& body) {
  if (body.layout.rows == 0) return Ok();
  const auto size = static_cast<std::uint64_t>(body.layout.body_length) + arrow::kBodyAlignment;
  if (shard_ && shard_->rows() > 0 && shard_->bytes() + size > options_.shard_bytes) {
    MUSTER_TRY(FinishShard());
  }
  if (!shard_) {
    if (manifest_.shards.empty()) {
      MUSTER_TRY(files_.MakeDirectory(folder_ + "/_muster", 0755));
    }
    shard_ = MUSTER_TRY(ShardWriter::Create(files_, PartPath(manifest_.shards.size()), schema_));
  }
  return shard_->Append(body);
}

Status SplitWriter::FinishShard() {
  ShardWriter::Finished finished = MUSTER_TRY(shard_->Finish(options_.durable));
  shard_.reset();
  MUSTER_TRY(PutFile(fmt::format("_muster/{:05}.part", manifest_.shards.size()), finished.index));
  manifest_.shards.push_back(std::move(finished.entry));
  return Ok();
}

/// Only now is it known how many there are.
Status SplitWriter::NameShards() {
  const std::size_t count = manifest_.shards.size();
  for (std::size_t i = 0; i < count; ++i) {
    ShardEntry& shard = manifest_.shards[i];
    shard.name = fmt::format("data-{:05}-of-{:05}.arrow", i, count);
    MUSTER_TRY(files_.Rename(PartPath(i) + ".part", folder_ + "/" + shard.name));
    MUSTER_TRY(files_.Rename(fmt::format("{}/_muster/{:05}.part", folder_, i),
                             fmt::format("{}/_muster/{}.idx", folder_, shard.name)));
  }
  return Ok();
}

Status SplitWriter::PutFile(const std::string& name, ByteSpan content) {
  return data::PutFile(files_, folder_ + "/" + name, content, options_.durable);
}

Status SplitWriter::WriteJson(const Manifest& manifest) {
  MUSTER_TRY(PutFile("dataset_info.json", AsBytes(DatasetInfoJson(options_.label_names))));
  return PutFile("state.json", AsBytes(StateJson(manifest, options_.split)));
}

Result<PackedSplit> SplitWriter::Finish() {
  if (shard_) MUSTER_TRY(FinishShard());
  if (manifest_.shards.empty()) {
    return Error(Code::kPrecondition,
                 fmt::format("split {}: no image is left to pack", options_.split));
  }
  MUSTER_TRY(NameShards());
  MUSTER_TRY(PutFile("_muster/manifest", EncodeManifest(manifest_)));
  MUSTER_TRY(WriteJson(manifest_));
  PackedSplit packed{
      .name = options_.split, .shards = manifest_.shards.size(), .id = manifest_.Id()};
  for (const ShardEntry& shard : manifest_.shards) {
    packed.rows += shard.rows;
    packed.bytes += shard.bytes;
  }
  return packed;
}

}  // namespace muster::data
