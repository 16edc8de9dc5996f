#pragma once
// A process that serves TCPStores and does nothing else: one at a time, for who holds the other end
// of its socket. It ends when nobody holds it any more. What is asked and answered are fixed
// structs, one a SOCK_SEQPACKET packet, between processes of one image.

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/strong_id.h"

namespace muster::agent {

/// Forks it; from a process without other threads. The value is the socket to ask it by.
Result<Fd> StartStoreProcess();

/// Opens an empty store on a free port of `host`, in the place of any other; the one of this
/// generation stays. The value is its port. Unavailable: the process is gone or does not answer.
Result<std::uint16_t> OpenStore(int process, Generation generation, const std::string& host);
Status CloseStore(int process);

}  // namespace muster::agent
