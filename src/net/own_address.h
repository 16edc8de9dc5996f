#pragma once
// Where others reach this host: the address and the interface by which the system would send to
// them. Nothing is sent.

#include <string>

#include "base/result.h"

namespace muster::net {

struct OwnAddress {
  std::string host;       ///< IPv4, in numbers
  std::string interface;  ///< "eth0"; empty when none has that address
};

/// Towards `host`, an IPv4 address or a name; empty: towards everywhere, by the default route.
/// 127.0.0.1 and lo when there is no other. NotFound: no such name.
Result<OwnAddress> FindOwnAddress(const std::string& host);

}  // namespace muster::net
