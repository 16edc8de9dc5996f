#pragma once
// Packets with descriptors between processes of one host, over a SOCK_SEQPACKET socketpair: it has
// no name, so nobody else can connect, and a packet arrives whole or not at all. Nothing blocks and
// nothing raises SIGPIPE. Sizes are bounded on both sides; what arrives beyond them is an error and
// its descriptors are closed. One thread a socket end.

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace muster::os {

inline constexpr Bytes kMaxPacket = 128_KiB;
inline constexpr std::size_t kMaxPacketFds = 64;

struct SocketPair {
  Fd first;
  Fd second;
};
/// Two connected ends, CLOEXEC and non-blocking, that hold at least one largest packet.
Result<SocketPair> MakeSocketPair();

/// Sends a packet of 1 … kMaxPacket bytes and duplicates of `fds`. Unavailable: the other end does
/// not keep up (wait for POLLOUT) or is closed; nothing was sent.
Status SendPacket(int socket, std::string_view bytes, std::span<const int> fds = {});

struct Received {
  enum class Kind {
    kPacket,
    kNothing,  ///< none waits now
    kClosed,   ///< the other end is gone and every packet was read
  };
  Kind kind = Kind::kNothing;
  std::string bytes;
  std::vector<Fd> fds;  ///< CLOEXEC, ours
};
/// The next packet. Invalid: it broke the limits and is dropped whole.
Result<Received> ReceivePacket(int socket);

/// Who made the other end (SO_PEERCRED).
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
Result<Peer> PeerOf(int socket);

}  // namespace muster::os
