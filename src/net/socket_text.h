#pragma once
// A socket address in our form. Pure.

#include "net/address.h"

struct sockaddr;

namespace muster::net {

/// An IPv4 address inside of IPv6 is shown as IPv4; a family that is not IP as an empty host.
Address AddressOf(const sockaddr& from);

}  // namespace muster::net
