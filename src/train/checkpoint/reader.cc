#include "train/checkpoint/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "train/checkpoint/block_sums.h"
#include "train/checkpoint/rank_file.h"

namespace muster::checkpoint {

void Reader::Use(const std::string& path, const Manifest& manifest) {
  path_ = path;
  manifest_ = &manifest;
  header_seen_.assign(manifest.files.size(), false);
  for (const IndexEntry& entry : manifest.index.entries) tensors_[entry.name] = &entry;
  for (const Group& group : manifest.index.groups) pieces_[group.name];
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    for (const StoredSlice& slice : manifest.files[i].slices)
      pieces_[slice.group].push_back({.begin = slice.begin,
                                      .end = slice.begin + slice.length,
                                      .file = i,
                                      .data_offset = slice.data_offset});
  }
  for (auto& [group, pieces] : pieces_) std::ranges::sort(pieces, {}, &Piece::begin);
}

Result<Reader::Found> Reader::Find(std::string_view group, std::string_view name) const {
  const auto tensor = tensors_.find(name);
  const auto found = std::ranges::find(manifest_->index.groups, group, &Group::name);
  if (tensor == tensors_.end() || found == manifest_->index.groups.end())
    return Error(Code::kNotFound,
                 fmt::format("{} has no tensor '{}' in group '{}'", path_, name, group));
  const std::uint64_t size = SizeOf(found->dtype);
  return Found{
      .offset = tensor->second->offset, .size = size, .bytes = tensor->second->length * size};
}

Status Reader::Read(std::string_view group, std::string_view name, std::uint64_t first,
                    MutableByteSpan out) {
  const Found found = MUSTER_TRY(Find(group, name));
  const std::uint64_t length = found.bytes / found.size;
  if (out.size() % found.size != 0 || first > length || out.size() / found.size > length - first)
    return Error(Code::kInvalid, fmt::format("elements {} to {} are not in tensor '{}' of {}",
                                             first, first + out.size() / found.size, name, length));
  const std::vector<Piece>& pieces = pieces_.find(group)->second;
  std::uint64_t at = found.offset + first;
  auto piece = std::ranges::upper_bound(pieces, at, {}, &Piece::begin);
  // The manifest was checked: the pieces hold every element of every tensor.
  if (piece != pieces.begin()) --piece;
  for (; !out.empty(); ++piece) {
    if (piece == pieces.end() || piece->begin > at)
      return Error(Code::kBug, "a tensor's slices have a hole");
    if (piece->end <= at) continue;
    const std::uint64_t bytes = std::min<std::uint64_t>(out.size(), (piece->end - at) * found.size);
    const std::uint64_t offset = piece->data_offset + (at - piece->begin) * found.size;
    MUSTER_TRY(Within(fmt::format("read tensor '{}' of group '{}'", name, group),
                      ReadData(piece->file, offset, out.first(bytes))));
    at += bytes / found.size;
    out = out.subspan(bytes);
  }
  return Ok();
}

Status Reader::ReadData(std::size_t file, std::uint64_t offset, MutableByteSpan out) {
  const std::uint64_t data_bytes = manifest_->files[file].data_bytes;
  while (!out.empty()) {
    const std::uint64_t block = offset / kBlockBytes;
    const std::uint64_t begin = block * kBlockBytes;
    const std::uint64_t size = std::min(kBlockBytes, data_bytes - begin);
    const std::uint64_t inside = offset - begin;
    const std::uint64_t bytes = std::min<std::uint64_t>(out.size(), size - inside);
    if (bytes == size) {
      MUSTER_TRY(LoadBlock(file, block, out.first(bytes)));  // whole: straight to the caller
    } else {
      if (block_is_ != std::pair(file, block)) {
        block_is_.reset();
        block_.resize(size);
        MUSTER_TRY(LoadBlock(file, block, block_));
        block_is_ = std::pair(file, block);
      }
      std::memcpy(out.data(), block_.data() + inside, bytes);
    }
    offset += bytes;
    out = out.subspan(bytes);
  }
  return Ok();
}

Status Reader::OpenFile(std::size_t file) {
  if (open_ && open_index_ == file) return Ok();
  open_.reset();
  auto opened = MUSTER_TRY(ReadableFile::Open(path_ + "/" + manifest_->files[file].name));
  if (!header_seen_[file]) {
    MUSTER_TRY(CheckRankFile(opened, manifest_->files[file], manifest_->index));
    header_seen_[file] = true;
  }
  open_ = std::move(opened);
  open_index_ = file;
  return Ok();
}

Status Reader::LoadBlock(std::size_t file, std::uint64_t block, MutableByteSpan into) {
  MUSTER_TRY(OpenFile(file));
  const StoredFile& stored = manifest_->files[file];
  MUSTER_TRY(open_->ReadAt(stored.header_bytes + block * kBlockBytes, into));
  const std::uint32_t sum = Crc32c(into);
  if (sum == stored.crc32c[block]) return Ok();
  return Error(Code::kDataLoss, DamagedBlock(file, block, sum),
               "use an older checkpoint of the folder");
}

std::string Reader::DamagedBlock(std::size_t file, std::uint64_t block, std::uint32_t sum) const {
  const StoredFile& stored = manifest_->files[file];
  const std::uint64_t begin = block * kBlockBytes;
  const std::uint64_t end = std::min(stored.data_bytes, begin + kBlockBytes);
  return fmt::format(
      "{}/{}: bytes {} to {} are damaged (CRC32C {:08x} instead of {:08x}); they hold {}", path_,
      stored.name, stored.header_bytes + begin, stored.header_bytes + end - 1, sum,
      stored.crc32c[block], TensorsIn(file, begin, end));
}

std::string Reader::TensorsIn(std::size_t file, std::uint64_t begin, std::uint64_t end) const {
  constexpr std::size_t kMostNamed = 4;
  std::vector<std::string> names;
  for (const StoredSlice& slice : manifest_->files[file].slices) {
    const auto group = std::ranges::find(manifest_->index.groups, slice.group, &Group::name);
    const std::uint64_t size = SizeOf(group->dtype);
    const std::uint64_t slice_end = slice.data_offset + slice.length * size;
    if (slice_end <= begin || slice.data_offset >= end) continue;
    const std::uint64_t low = std::max(begin, slice.data_offset);
    const std::uint64_t high = std::min(end, slice_end);
    const std::uint64_t first = slice.begin + (low - slice.data_offset) / size;
    const std::uint64_t last = slice.begin + (high - slice.data_offset + size - 1) / size;
    for (const auto& [name, entry] : tensors_) {
      if (entry->offset < last && entry->offset + entry->length > first)
        names.push_back("'" + name + "' (" + slice.group + ")");
    }
  }
  if (names.empty()) return "padding only";
  std::string text = names[0];
  for (std::size_t i = 1; i < std::min(names.size(), kMostNamed); ++i) text += ", " + names[i];
  if (names.size() > kMostNamed) text += fmt::format(" and {} more", names.size() - kMostNamed);
  return text;
}

Result<VerifyReport> Reader::Verify() {
  VerifyReport report;
  for (std::size_t file = 0; file < manifest_->files.size(); ++file) VerifyFile(file, report);
  return report;
}

void Reader::VerifyFile(std::size_t file, VerifyReport& report) {
  const StoredFile& stored = manifest_->files[file];
  block_is_.reset();
  open_.reset();
  header_seen_[file] = false;
  const Status header = OpenFile(file);
  if (!header) {
    report.damage.push_back(header.error().message());
    header_seen_[file] = true;  // The blocks may be whole.
    if (!OpenFile(file)) return;
  }
  report.bytes += stored.header_bytes;
  for (std::uint64_t block = 0; block < BlocksOf(stored.data_bytes); ++block) {
    block_.resize(std::min(kBlockBytes, stored.data_bytes - block * kBlockBytes));
    const Status loaded = LoadBlock(file, block, block_);
    if (!loaded) report.damage.push_back(loaded.error().message());
    report.bytes += block_.size();
  }
  open_.reset();
  header_seen_[file] = header.has_value();
}

}  // namespace muster::checkpoint
