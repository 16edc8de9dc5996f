// Three clients of a TCPStore whose bytes are the input, in pieces: each piece begins with who
// sends and how much. One that breaks the protocol is gone, as its connection would be.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string_view>

#include "agent/store/store_state.h"
#include "agent/store/store_wire.h"

using muster::agent::StoreClientId;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  muster::agent::StoreState state;
  std::map<std::uint64_t, muster::agent::StoreRequestReader> readers;
  for (std::uint64_t client = 0; client < 3; ++client)
    readers[client].Append({"\0\xCE\xF7\x85\x3C", 5});
  while (input.size() > 1) {
    const std::uint64_t client = static_cast<std::uint8_t>(input[0]) % 3;
    const std::string_view piece = input.substr(1, 1U + static_cast<std::uint8_t>(input[0]) / 3U);
    input.remove_prefix(1 + piece.size());
    const auto reader = readers.find(client);
    if (reader == readers.end()) continue;
    reader->second.Append(piece);
    for (;;) {
      const auto request = reader->second.Next();
      if (request && !*request) break;
      const bool served = request && state.Apply(StoreClientId(client), **request).has_value();
      if (served) continue;
      readers.erase(reader);
      state.Forget(StoreClientId(client));
      break;
    }
    if (state.bytes() > muster::agent::kMaxStoreBytes) std::abort();
  }
  return 0;
}
