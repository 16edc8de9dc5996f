#pragma once
// A TCP port on loopback for a script's own store (MASTER_PORT), one a generation: a late
// connection of an older generation then meets nobody. The socket stays bound, not listening, with
// SO_REUSEADDR: the script's server can bind beside it, and the kernel gives the port to nobody
// else.

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace muster::agent {

struct ReservedPort {
  Fd socket;
  std::uint16_t port = 0;
};

/// A port of 127.0.0.1 that nobody else gets while the value lives. Denied, Exhausted as of
/// bind(2).
Result<ReservedPort> ReservePort();

}  // namespace muster::agent
