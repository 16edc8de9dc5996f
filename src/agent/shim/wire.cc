#include "agent/shim/wire.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/fd_packet.h"

namespace muster::agent::shim {
namespace {

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
  os::InPacket in{.bytes = packet->bytes, .room = sizeof(packet->bytes)};
  packet->fd_count = 0;
  const os::Received received = os::ReceivePacket(socket, &in, MSG_DONTWAIT);
  if (received == os::Received::kNothing) return Receive::kNothing;
  if (received != os::Received::kPacket) return Receive::kClosed;
  packet->size = in.size;
  packet->fd_count = in.fd_count;
  std::memcpy(packet->fds, in.fds, sizeof(int) * in.fd_count);
  const bool ours = !in.cut && IsOurs(*packet);
  if (!ours || in.lost_fds) packet->CloseFds();
  return ours ? Receive::kPacket : Receive::kMalformed;
}

int SendPacket(int socket, const void* message, std::size_t size, const int* fds,
               std::uint32_t fd_count) {
  if (fd_count > kMaxPacketFds) return EINVAL;
  return os::SendPacket(socket, {message, size, fds, fd_count}, MSG_DONTWAIT);
}

}  // namespace muster::agent::shim
