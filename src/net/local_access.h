#pragma once
// What a server on this host asks of a request, so that no web page that the user happens to have
// open can drive it: the Host must be a loopback name with the server's own port (against DNS
// rebinding), and an Origin, which browsers send, must be the server itself. Pure.

#include <cstdint>

#include "net/http_message.h"

namespace muster::net {

/// Denied says which header it was.
Status CheckLocalAccess(const Request& request, std::uint16_t port, bool tls);

}  // namespace muster::net
