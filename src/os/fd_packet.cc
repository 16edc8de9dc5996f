#include "os/fd_packet.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace muster::os {
namespace {

union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int) * kMostPacketFds)];
};

void TakeFds(msghdr* message, InPacket* packet) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count && packet->fd_count < kMostPacketFds; ++i) {
      std::memcpy(&packet->fds[packet->fd_count++], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
    }
  }
}

}  // namespace

int SendPacket(int socket, const OutPacket& packet, int flags) {
  Control control{};
  iovec part{const_cast<void*>(packet.bytes), packet.size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (packet.fd_count > 0) {
    if (packet.fd_count > kMostPacketFds) return EINVAL;
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * packet.fd_count);
    control.align.cmsg_level = SOL_SOCKET;
    control.align.cmsg_type = SCM_RIGHTS;
    control.align.cmsg_len = CMSG_LEN(sizeof(int) * packet.fd_count);
    std::memcpy(CMSG_DATA(&control.align), packet.fds, sizeof(int) * packet.fd_count);
  }
  ssize_t n = 0;
  do {
    n = ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n < 0 ? errno : 0;
}

Received ReceivePacket(int socket, InPacket* packet, int flags) {
  packet->fd_count = 0;
  Control control{};
  iovec part{packet->bytes, packet->room};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ssize_t n = 0;
  bool reset = false;
  for (;;) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    n = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    if (n >= 0) break;
    if (errno == EINTR) continue;
    // Said once, and before what the dead peer had sent.
    if (errno != ECONNRESET || reset) break;
    reset = true;
  }
  if (n < 0 && errno == EAGAIN) return Received::kNothing;
  if (n == 0 || (n < 0 && errno == ECONNRESET)) return Received::kClosed;
  if (n < 0) return Received::kError;
  packet->size = static_cast<std::size_t>(n);
  TakeFds(&message, packet);
  packet->cut = (message.msg_flags & MSG_TRUNC) != 0;
  packet->lost_fds = (message.msg_flags & MSG_CTRUNC) != 0;
  return Received::kPacket;
}

}  // namespace muster::os
