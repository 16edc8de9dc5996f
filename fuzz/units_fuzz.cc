// Sizes and durations: whatever parses is in range and reads back the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto bytes = muster::ParseBytes(text)) {
    MUSTER_CHECK(bytes->count >= 0);
    MUSTER_CHECK(!muster::FormatBytes(*bytes).empty());
    MUSTER_CHECK(muster::ParseBytes(std::to_string(bytes->count))->count == bytes->count);
  }
  if (const auto duration = muster::ParseDuration(text)) {
    MUSTER_CHECK(duration->count() >= 0);
    MUSTER_CHECK(!muster::FormatDuration(*duration).empty());
    MUSTER_CHECK(*muster::ParseDuration(muster::FormatExact(*duration)) == *duration);
  }
  return 0;
}
