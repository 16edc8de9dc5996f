// What a process can write about itself into /proc.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "os/procfs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto stat = muster::os::ParseProcessStat(text)) {
    MUSTER_CHECK(text.find(stat->name) != std::string_view::npos);
  }
  if (const auto signals = muster::os::ParseProcessSignals(text)) {
    MUSTER_CHECK(!signals->Catches(0) && !signals->Catches(65));
  }
  return 0;
}
