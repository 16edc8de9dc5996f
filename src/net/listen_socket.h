#pragma once
// A listening TCP socket, bound before anyone is told of it, so that port 0 has no race. Takes
// numbers, "localhost" and "*" (all of IPv4); names of other hosts are for those who dial.

#include "base/fd.h"
#include "net/address.h"

namespace muster::net {

struct ListenSocket {
  Fd fd;            ///< CLOEXEC, non-blocking
  Address address;  ///< with the port that was really taken
};

/// Denied, Exhausted, AlreadyExists (the port is taken), Precondition (no such address here).
Result<ListenSocket> OpenListenSocket(const Address& address);
/// The address that `fd` is bound to. Invalid when it does not listen.
Result<Address> BoundAddress(int fd);

}  // namespace muster::net
