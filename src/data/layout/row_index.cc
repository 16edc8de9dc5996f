#include "data/layout/row_index.h"

#include <fmt/format.h>

#include "data/layout/little_endian.h"

namespace muster::data {
namespace {

constexpr std::string_view kMagic = "MUSTERIX";
constexpr std::uint32_t kVersion = 1;

}  // namespace

std::vector<std::byte> EncodeRowIndexHeader(std::uint64_t rows) {
  std::vector<std::byte> out;
  PutBytes(out, AsBytes(kMagic));
  Put(out, kVersion);
  Put(out, static_cast<std::uint32_t>(kRowEntryBytes));
  Put(out, rows);
  out.resize(kRowIndexHeader);
  return out;
}

void AppendRowEntry(std::vector<std::byte>& out, const RowEntry& entry) {
  Put(out, entry.offset);
  Put(out, entry.length);
  Put(out, entry.crc);
}

Result<ByteSpan> RowEntries(ByteSpan file, std::uint64_t rows) {
  LittleReader reader(file);
  const std::string_view magic = AsText(reader.TakeBytes(kMagic.size()));
  const auto version = reader.Take<std::uint32_t>();
  const auto entry_bytes = reader.Take<std::uint32_t>();
  const auto recorded = reader.Take<std::uint64_t>();
  const auto reserved = reader.Take<std::uint64_t>();
  if (file.size() < kRowIndexHeader || magic != kMagic || entry_bytes != kRowEntryBytes) {
    return Error(Code::kDataLoss, "not a row index");
  }
  // A later index would come with a later manifest, which is read first.
  if (version != kVersion) {
    return Error(Code::kDataLoss, fmt::format("the row index says version {}, and the manifest "
                                              "beside it goes with version {}",
                                              version, kVersion));
  }
  if (reserved != 0) return Error(Code::kDataLoss, "the row index has a damaged header");
  const std::uint64_t have = (file.size() - kRowIndexHeader) / kRowEntryBytes;
  if (recorded != rows || have != rows || (file.size() - kRowIndexHeader) % kRowEntryBytes != 0) {
    return Error(Code::kDataLoss,
                 fmt::format("the row index has {} bytes and says {} rows; the {} rows of the "
                             "manifest need {} bytes",
                             file.size(), recorded, rows, kRowIndexHeader + rows * kRowEntryBytes));
  }
  return file.subspan(kRowIndexHeader);
}

RowEntry LoadRowEntry(ByteSpan entries, std::uint64_t row) {
  const std::byte* at = entries.data() + row * kRowEntryBytes;
  return {LoadLittle<std::uint32_t>(at), LoadLittle<std::uint32_t>(at + 4),
          LoadLittle<std::uint32_t>(at + 8)};
}

}  // namespace muster::data
