// Any text as a message between coordinator and node: it is refused, or it reads back as what it
// was.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agent/wire/wire.h"

namespace wire = muster::agent::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr muster::agent::RankRange kRanks{0, 64};
  if (const auto order = wire::DecodeOrder(text, kRanks)) {
    const std::string once = wire::Encode(*order);
    const auto again = wire::DecodeOrder(once, kRanks);
    if (!again || wire::Encode(*again) != once) std::abort();
  }
  if (const auto report = wire::DecodeReport(text, kRanks, {})) {
    const std::string once = wire::Encode(*report);
    const auto again = wire::DecodeReport(once, kRanks, {});
    if (!again || wire::Encode(*again) != once) std::abort();
  }
  return 0;
}
