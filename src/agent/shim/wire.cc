#include "agent/shim/wire.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace muster::agent::shim {
namespace {

union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int) * kMaxPacketFds)];
};

void TakeFds(msghdr* message, Packet* packet) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count && packet->fd_count < kMaxPacketFds; ++i) {
      std::memcpy(&packet->fds[packet->fd_count++], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
    }
  }
}

bool IsOurs(const Packet& packet) {
  if (packet.size < sizeof(Header)) return false;
  Header header{};
  std::memcpy(&header, packet.bytes, sizeof(header));
  return header.magic == kMagic && header.version == kVersion;
}

}  // namespace

Type Packet::type() const {
  Header header{};
  std::memcpy(&header, bytes, sizeof(header));
  return header.type;
}

int Packet::Take(std::uint32_t index) {
  const int fd = fds[index];
  fds[index] = -1;
  return fd;
}

void Packet::CloseFds() {
  for (std::uint32_t i = 0; i < fd_count; ++i) {
    if (fds[i] >= 0) ::close(fds[i]);
  }
  fd_count = 0;
}

Receive ReceivePacket(int socket, Packet* packet) {
  packet->fd_count = 0;
  Control control{};
  iovec part{packet->bytes, sizeof(packet->bytes)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ssize_t n = 0;
  bool reset = false;
  for (;;) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    n = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n >= 0) break;
    if (errno == EINTR) continue;
    // Said once, and before what the dead peer had sent.
    if (errno != ECONNRESET || reset) break;
    reset = true;
  }
  if (n < 0) return errno == EAGAIN ? Receive::kNothing : Receive::kClosed;
  if (n == 0) return Receive::kClosed;
  packet->size = static_cast<std::size_t>(n);
  TakeFds(&message, packet);
  const bool ours = (message.msg_flags & MSG_TRUNC) == 0 && IsOurs(*packet);
  if (!ours || (message.msg_flags & MSG_CTRUNC) != 0) packet->CloseFds();
  if (!ours) return Receive::kMalformed;
  return Receive::kPacket;
}

int SendPacket(int socket, const void* message, std::size_t size, const int* fds,
               std::uint32_t fd_count) {
  Control control{};
  iovec part{const_cast<void*>(message), size};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (fd_count > 0) {
    if (fd_count > kMaxPacketFds) return EINVAL;
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
    control.align.cmsg_level = SOL_SOCKET;
    control.align.cmsg_type = SCM_RIGHTS;
    control.align.cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
    std::memcpy(CMSG_DATA(&control.align), fds, sizeof(int) * fd_count);
  }
  ssize_t n = 0;
  do {
    n = ::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n < 0 ? errno : 0;
}

}  // namespace muster::agent::shim
