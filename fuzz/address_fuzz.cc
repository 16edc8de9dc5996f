// Any text as host:port and as a URL: what is taken is formatted to something that reads back as
// the same, and what is refused is told in plain text.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "net/address.h"

namespace {

void Demand(bool holds) {
  if (!holds) std::abort();
}

template <typename Read>
void DemandPlain(const Read& read) {
  const std::string why = read.error().ToString();
  Demand(muster::IsUtf8(why) && why == muster::PlainLine(why) && why.size() < 1000);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace muster::net;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto address = ParseAddress(text, PortZero::kFreePort);
  if (address) {
    Demand(ParseAddress(FormatAddress(*address), PortZero::kFreePort) == *address);
    Demand(ParseAddress(text).has_value() == (address->port != 0));
  } else {
    DemandPlain(address);
  }
  const auto url = ParseUrl(text);
  if (url) {
    Demand(ParseUrl(FormatUrl(*url)) == *url);
    Demand(url->target.front() == '/' && url->address.port != 0);
  } else {
    DemandPlain(url);
  }
  return 0;
}
