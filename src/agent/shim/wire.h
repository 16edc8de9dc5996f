#pragma once
// One packet of protocol.h with its descriptors over a SOCK_SEQPACKET socket. Libc only, no malloc.
// Used by the shim, the zygote and the controller.

#include <cstddef>
#include <cstdint>

#include "agent/shim/protocol.h"
#include "os/fd_packet.h"

namespace muster::agent::shim {

inline constexpr std::uint32_t kMaxPacketFds = kSpawnFds + kMaxExtraFds;
static_assert(kMaxPacketFds <= os::kMostPacketFds);

/// A received packet. It owns its descriptors until they are taken or Close is called.
struct Packet {
  alignas(8) char bytes[kMaxPacket];
  std::size_t size = 0;
  int fds[os::kMostPacketFds];
  std::uint32_t fd_count = 0;

  Type type() const;
  /// The packet as message T, or nullptr when its size is not that of T.
  template <typename T>
  const T* As() const {
    return size == sizeof(T) ? reinterpret_cast<const T*>(bytes) : nullptr;
  }
  /// Takes descriptor `index` out: it is the caller's then.
  int Take(std::uint32_t index);
  void CloseFds();
};

enum class Receive { kPacket, kNothing, kClosed, kMalformed };

/// Takes one packet without blocking. kMalformed: it is not of our protocol; its descriptors are
/// closed. A packet whose descriptors did not all fit into our table is delivered with none.
/// kClosed comes behind the last packet, also when the other end died with packets of ours unread.
Receive ReceivePacket(int socket, Packet* packet);

/// Sends one packet without blocking. 0, EAGAIN when the socket is full, or another errno value.
int SendPacket(int socket, const void* message, std::size_t size, const int* fds,
               std::uint32_t fd_count);

}  // namespace muster::agent::shim
