#include "train/checkpoint/rank_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/crc32c.h"
#include "base/durable.h"
#include "base/readable_file.h"
#include "train/checkpoint/block_sums.h"
#include "train/checkpoint/safetensors.h"

namespace muster::checkpoint {
namespace {

constexpr const char* kSumsKey = "crc32c";

Result<DType> DTypeOf(const FlatIndex& index, std::string_view group) {
  const auto found = std::ranges::find(index.groups, group, &Group::name);
  if (found == index.groups.end())
    return Error(Code::kInvalid, "the index has no group '" + std::string(group) + "'");
  return found->dtype;
}

Result<std::vector<SafetensorsEntry>> EntriesOf(const FlatIndex& index,
                                                const std::vector<Slice>& slices) {
  std::vector<SafetensorsEntry> entries;
  std::uint64_t at = 0;
  for (const Slice& slice : slices) {
    const DType dtype = MUSTER_TRY(DTypeOf(index, slice.group));
    const std::uint64_t length = slice.data.size() / SizeOf(dtype);
    if (slice.data.size() % SizeOf(dtype) != 0 || slice.begin > index.length ||
        length > index.length - slice.begin)
      return Error(Code::kInvalid,
                   fmt::format("a slice of {} bytes at element {} of group '{}' "
                               "does not fit the flat space of {}",
                               slice.data.size(), slice.begin, slice.group, index.length));
    entries.push_back({.name = fmt::format("{}@{:016}", slice.group, slice.begin),
                       .dtype = dtype,
                       .shape = {length},
                       .begin = at,
                       .end = at + slice.data.size()});
    at += slice.data.size();
  }
  return entries;
}

std::string SumsText(const std::vector<Slice>& slices) {
  BlockSums sums;
  for (const Slice& slice : slices) sums.Add(slice.data);
  std::string text;
  for (const std::uint32_t sum : sums.Finish()) text += fmt::format("{:08x}", sum);
  return text;
}

Result<std::vector<std::uint32_t>> ParseSums(const SafetensorsHeader& header) {
  const auto found = header.metadata.find(kSumsKey);
  const std::string text = found == header.metadata.end() ? std::string() : found->second;
  if (text.size() != BlocksOf(header.data_bytes()) * 8)
    return Error(Code::kDataLoss, "the header has checksums for another number of blocks");
  std::vector<std::uint32_t> sums;
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint32_t sum = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + 8, sum, 16);
    if (error != std::errc() || end != text.data() + at + 8)
      return Error(Code::kDataLoss, "the header has a malformed checksum");
    sums.push_back(sum);
  }
  return sums;
}

Result<StoredSlice> SliceOf(const SafetensorsEntry& entry, const FlatIndex& index) {
  const std::size_t split = entry.name.find('@');
  std::uint64_t begin = 0;
  const char* last = entry.name.data() + entry.name.size();
  if (split == std::string::npos ||
      std::from_chars(entry.name.data() + split + 1, last, begin).ptr != last)
    return Error(Code::kDataLoss, "'" + entry.name.substr(0, 200) + "' is no slice");
  const std::string group = entry.name.substr(0, split);
  if (MUSTER_TRY(DTypeOf(index, group)) != entry.dtype || entry.shape.size() != 1 ||
      begin > index.length || entry.shape[0] > index.length - begin)
    return Error(Code::kDataLoss, "slice '" + entry.name.substr(0, 200) + "' is of another index");
  return StoredSlice{
      .group = group, .begin = begin, .length = entry.shape[0], .data_offset = entry.begin};
}

/// By place in the file, as a header is read; the manifest's order is the writer's.
StoredFile Sorted(StoredFile file) {
  std::ranges::sort(file.slices, {}, [](const StoredSlice& slice) {
    return std::tie(slice.data_offset, slice.length, slice.group, slice.begin);
  });
  return file;
}

Result<StoredFile> Describe(const ReadableFile& file, const FlatIndex& index) {
  std::string raw;
  const SafetensorsHeader header = MUSTER_TRY(ReadSafetensors(file, raw));
  StoredFile stored{.name = muster::NameOf(file.path()),
                    .header_bytes = header.header_bytes,
                    .data_bytes = header.data_bytes(),
                    .header_crc32c = Crc32c(AsBytes(raw)),
                    .crc32c = MUSTER_TRY(Within(file.path(), ParseSums(header)))};
  for (const SafetensorsEntry& entry : header.entries)
    stored.slices.push_back(MUSTER_TRY(Within(file.path(), SliceOf(entry, index))));
  return Sorted(std::move(stored));
}

}  // namespace

Result<std::uint64_t> WriteRankFile(FileSystem& files, const std::string& path,
                                    const FlatIndex& index, const std::vector<Slice>& slices) {
  const std::vector<SafetensorsEntry> entries = MUSTER_TRY(EntriesOf(index, slices));
  const std::string header = MUSTER_TRY(BuildSafetensors(entries, {{kSumsKey, SumsText(slices)}}));
  const auto file = MUSTER_TRY(files.Create(path, {}));
  std::uint64_t bytes = header.size();
  MUSTER_TRY(file->Write(AsBytes(header)));
  for (const Slice& slice : slices) {
    MUSTER_TRY(file->Write(slice.data));
    bytes += slice.data.size();
  }
  MUSTER_TRY(file->Sync());
  MUSTER_TRY(file->Close());
  return bytes;
}

Result<StoredFile> DescribeRankFile(const std::string& path, const FlatIndex& index) {
  return Describe(MUSTER_TRY(ReadableFile::Open(path)), index);
}

Status CheckRankFile(const ReadableFile& file, const StoredFile& stored, const FlatIndex& index) {
  const auto damaged = [&](std::string_view what) {
    return Error(Code::kDataLoss,
                 fmt::format("{}: the header, bytes 0 to {}, {}", file.path(),
                             stored.header_bytes - 1, what),
                 "use an older checkpoint of the folder");
  };
  std::string raw(stored.header_bytes, '\0');
  MUSTER_TRY(file.ReadAt(0, std::as_writable_bytes(std::span(raw))));
  if (Crc32c(AsBytes(raw)) != stored.header_crc32c) return damaged("is damaged");
  const auto described = Describe(file, index);
  if (!described) return damaged("is malformed: " + described.error().message());
  if (*described == Sorted(stored)) return Ok();
  return damaged("tells of other data than manifest.json");
}

}  // namespace muster::checkpoint
