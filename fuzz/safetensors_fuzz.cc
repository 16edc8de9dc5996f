// Safetensors headers: any bytes give entries that fill the data without holes, or an error; what
// was read can be written and read again.
#include <cstdint>
#include <cstring>
#include <string_view>

#include "train/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace muster::checkpoint;
  // The first 8 bytes say how long the data part is; the format's own length is the file's
  // business.
  std::uint64_t data_bytes = 0;
  if (size < sizeof data_bytes) return 0;
  std::memcpy(&data_bytes, data, sizeof data_bytes);
  const std::string_view json(reinterpret_cast<const char*>(data) + 8, size - 8);
  const auto header = ParseSafetensors(json, data_bytes);
  if (!header) return 0;
  std::uint64_t at = 0;
  for (const SafetensorsEntry& entry : header->entries) {
    MUSTER_CHECK(entry.begin == at && entry.end >= at);
    MUSTER_CHECK(*ElementsOf(entry.shape) * SizeOf(entry.dtype) == entry.end - entry.begin);
    at = entry.end;
  }
  MUSTER_CHECK(at == data_bytes);
  const auto written = BuildSafetensors(header->entries, header->metadata);
  MUSTER_CHECK(written.has_value() && written->size() % 64 == 0);
  const auto again = ParseSafetensors(std::string_view(*written).substr(8), data_bytes);
  MUSTER_CHECK(again.has_value() && again->entries.size() == header->entries.size());
  return 0;
}
