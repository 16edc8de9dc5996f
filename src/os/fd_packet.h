#pragma once
// One packet with descriptors over a SOCK_SEQPACKET socket: what the shim's protocol and the
// recovery link are made of. Libc only, no malloc: the shim links it. Any thread.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace muster::os {

inline constexpr std::uint32_t kMostPacketFds = 16;

struct OutPacket {
  const void* bytes = nullptr;
  std::size_t size = 0;
  const int* fds = nullptr;  ///< the receiver gets duplicates
  std::uint32_t fd_count = 0;
};

/// `flags` as for sendmsg; no SIGPIPE comes. 0 or an errno value, EINVAL for too many descriptors.
int SendPacket(int socket, const OutPacket& packet, int flags);

struct InPacket {
  void* bytes = nullptr;
  std::size_t room = 0;
  std::size_t size = 0;     ///< that came
  int fds[kMostPacketFds];  ///< CLOEXEC; the caller's from then on
  std::uint32_t fd_count = 0;
  bool cut = false;       ///< it was larger than the room
  bool lost_fds = false;  ///< not all of its descriptors fit into our table
};

enum class Received { kPacket, kNothing, kClosed, kError };

/// kNothing: MSG_DONTWAIT, and none waits. kClosed comes behind the last packet, also when the
/// other end died with packets of ours unread. kError: errno says which.
Received ReceivePacket(int socket, InPacket* packet, int flags);

}  // namespace muster::os
