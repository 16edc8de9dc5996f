#include "data/pack/shard_writer.h"

#include <algorithm>

#include "base/crc32c.h"

namespace muster::data {
namespace {

constexpr std::size_t kBufferBytes = 1u << 20;

}  // namespace

Result<std::unique_ptr<ShardWriter>> ShardWriter::Create(FileSystem& files, const std::string& path,
                                                         const arrow::Schema& schema) {
  auto file = MUSTER_TRY(files.Create(path + ".part", {}));
  std::unique_ptr<ShardWriter> writer(new ShardWriter(std::move(file)));
  writer->buffer_.reserve(kBufferBytes);
  MUSTER_TRY(writer->Write(arrow::EncodeSchema(schema)));
  return writer;
}

Status ShardWriter::Append(const RowColumns::Body& body) {
  const std::vector<std::byte> head = arrow::EncodeBatchHead(body.layout, bytes());
  BatchEntry batch;
  batch.frame = {.offset = bytes(),
                 .metadata_length = head.size(),
                 .body_length = static_cast<std::uint64_t>(body.layout.body_length),
                 .rows = static_cast<std::uint64_t>(body.layout.rows)};
  batch.frame_crc = Crc32c(body.after, Crc32c(body.before, Crc32c(head)));
  batch.index_crc = Crc32c(body.index);
  for (const ByteSpan part :
       {ByteSpan(head), ByteSpan(body.before), body.images, ByteSpan(body.after)}) {
    MUSTER_TRY(Write(part));
  }
  entry_.rows += batch.frame.rows;
  entry_.batches.push_back(batch);
  index_.insert(index_.end(), body.index.begin(), body.index.end());
  return Ok();
}

Status ShardWriter::Write(ByteSpan data) {
  if (buffer_.size() + data.size() > kBufferBytes) MUSTER_TRY(Flush());
  if (data.size() < kBufferBytes) {
    buffer_.insert(buffer_.end(), data.begin(), data.end());
    return Ok();
  }
  Account(data);
  MUSTER_TRY(file_->Write(data));
  written_ += data.size();
  return Ok();
}

Status ShardWriter::Flush() {
  if (buffer_.empty()) return Ok();
  Account(buffer_);
  MUSTER_TRY(file_->Write(buffer_));
  written_ += buffer_.size();
  buffer_.clear();
  return Ok();
}

void ShardWriter::Account(ByteSpan data) {
  digest_.Add(data);
  while (!data.empty()) {
    const ByteSpan piece =
        data.first(std::min<std::uint64_t>(data.size(), kPartBytes - part_filled_));
    part_crc_ = Crc32c(piece, part_crc_);
    part_filled_ += piece.size();
    data = data.subspan(piece.size());
    if (part_filled_ < kPartBytes) continue;
    entry_.part_crcs.push_back(part_crc_);
    part_filled_ = part_crc_ = 0;
  }
}

Result<ShardWriter::Finished> ShardWriter::Finish(bool durable) {
  MUSTER_TRY(Write(arrow::kEndOfStream));
  MUSTER_TRY(Flush());
  if (part_filled_ > 0) entry_.part_crcs.push_back(part_crc_);
  if (durable) MUSTER_TRY(file_->Sync());
  MUSTER_TRY(file_->Close());
  entry_.bytes = written_;
  entry_.digest = digest_.Finish();
  std::vector<std::byte> index = EncodeRowIndexHeader(entry_.rows);
  index.insert(index.end(), index_.begin(), index_.end());
  return Finished{std::move(entry_), std::move(index)};
}

}  // namespace muster::data
