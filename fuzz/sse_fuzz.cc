// Any bytes in any pieces: the same events as in one piece, each valid UTF-8 and within the limits;
// what is formatted comes back as it was.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.h"
#include "net/sse.h"

namespace {

using muster::net::Event;
using muster::net::SseParser;

constexpr std::size_t kLine = 64;
constexpr std::size_t kEvent = 128;

void Demand(bool holds) {
  if (!holds) std::abort();
}

struct Parsed {
  std::vector<Event> events;
  bool whole = true;
};

Parsed Parse(std::string_view bytes, std::size_t piece) {
  SseParser parser({.line = kLine, .event = kEvent});
  Parsed parsed;
  while (!bytes.empty() && parsed.whole) {
    const auto fed = parser.Feed(bytes.substr(0, piece), [&parsed](Event event) {
      parsed.events.push_back(std::move(event));
    });
    parsed.whole = fed.has_value();
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return parsed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const Parsed one = Parse(bytes, bytes.size() + 1);
  const Parsed many = Parse(bytes, 1 + data[0] % 16);
  Demand(one.whole == many.whole && one.events == many.events);
  for (const Event& event : one.events) {
    Demand(muster::IsUtf8(event.id) && muster::IsUtf8(event.type) && muster::IsUtf8(event.data));
    // A byte that is no UTF-8 becomes three.
    Demand(event.data.size() <= 3 * (kEvent + 1) && !event.type.empty());
    SseParser again;
    std::vector<Event> back;
    const auto fed =
        again.Feed(FormatEvent(event), [&back](Event e) { back.push_back(std::move(e)); });
    Demand(fed && back.size() == 1 && back[0] == event);
  }
  return 0;
}
