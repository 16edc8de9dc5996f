// Any text as the stacks that a helper or an agent sent: it is refused, or it reads back as what it
// was and can be grouped and told.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agent/stacks/clusters.h"

namespace stacks = muster::agent::stacks;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto processes = stacks::FromJson({reinterpret_cast<const char*>(data), size});
  if (!processes) return 0;
  const std::string once = stacks::ToJson(*processes);
  const auto again = stacks::FromJson(once);
  if (!again || stacks::ToJson(*again) != once) std::abort();
  if (stacks::ToText(*processes).empty() != processes->empty()) std::abort();
  return 0;
}
