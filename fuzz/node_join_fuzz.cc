// Any text as a join, a ticket or a batch of reports: it is refused, or it reads back as what it
// was.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "agent/remote/batch.h"
#include "agent/remote/ticket.h"

namespace agent = muster::agent;

namespace {

template <typename Parse, typename Format>
void Check(std::string_view text, const Parse& parse, const Format& format) {
  const auto read = parse(text);
  if (!read) return;
  const std::string once = format(*read);
  const auto again = parse(once);
  if (!again || format(*again) != once) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Check(text, agent::ParseJoin, agent::FormatJoin);
  Check(text, agent::ParseTicket, agent::FormatTicket);
  Check(text, agent::ParseBatch, agent::FormatBatch);
  return 0;
}
