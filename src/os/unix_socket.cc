#include "os/unix_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace muster::os {
namespace {

// The kernel counts its own bookkeeping too, and doubles what is asked for.
constexpr int kBuffer = 2 * static_cast<int>(kMaxPacket.count);

using ControlBuffer = std::array<std::byte, CMSG_SPACE(sizeof(int) * kMaxPacketFds)>;

/// Takes the descriptors out of the control messages, so that each is closed whatever follows.
std::vector<Fd> TakeDescriptors(msghdr& message) {
  std::vector<Fd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

Result<SocketPair> MakeSocketPair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) < 0) {
    return ErrnoError("socketpair", errno);
  }
  SocketPair pair{Fd(ends[0]), Fd(ends[1])};
  for (const int end : ends) {
    if (::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof(kBuffer)) < 0) {
      return ErrnoError("size a socket's buffer", errno);
    }
  }
  return pair;
}

Status SendPacket(int socket, std::string_view bytes, std::span<const int> fds) {
  // An empty packet would read like the end of the stream.
  if (bytes.empty() || static_cast<std::int64_t>(bytes.size()) > kMaxPacket.count) {
    return Error(Code::kInvalid, fmt::format("a packet of {} bytes", bytes.size()));
  }
  if (fds.size() > kMaxPacketFds) {
    return Error(Code::kInvalid, fmt::format("a packet with {} descriptors", fds.size()));
  }
  iovec data{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) ControlBuffer control{};
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return ErrnoError("send a packet", errno);
  }
  return Ok();
}

Result<Received> ReceivePacket(int socket) {
  Received received;
  received.bytes.resize(static_cast<std::size_t>(kMaxPacket.count));
  iovec data{.iov_base = received.bytes.data(), .iov_len = received.bytes.size()};
  alignas(cmsghdr) ControlBuffer control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN) return Received{};
  // A peer that died with unread packets of ours resets the socket: it is as closed as can be.
  if (n < 0 && errno == ECONNRESET) return Received{.kind = Received::Kind::kClosed};
  if (n < 0) return ErrnoError("receive a packet", errno);
  received.fds = TakeDescriptors(message);
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return Error(Code::kInvalid, fmt::format("a packet with more than {} bytes or {} descriptors",
                                             kMaxPacket.count, kMaxPacketFds));
  }
  received.kind = n == 0 ? Received::Kind::kClosed : Received::Kind::kPacket;
  received.bytes.resize(static_cast<std::size_t>(n));
  received.bytes.shrink_to_fit();
  return received;
}

Result<Peer> PeerOf(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0) {
    return ErrnoError("ask who is at the other end", errno);
  }
  return Peer{.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
}

}  // namespace muster::os
