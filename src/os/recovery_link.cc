#include "os/recovery_link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

namespace muster::os {
namespace {

static_assert(std::endian::native == std::endian::little, "messages are little endian");

constexpr std::uint32_t kMagic = 0x314b4c52;  // "RLK1"
enum class Kind : std::uint32_t { kReady = 1, kQuiesced = 2, kCommit = 3 };

/// `first` and `second`: applied and durable step, or the generation.
struct Packet {
  std::uint32_t magic = kMagic;
  Kind kind{};
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};
static_assert(sizeof(Packet) == 24);

union Control {
  cmsghdr align;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

/// 0 or an errno value.
int Send(int socket, const Packet& packet, int fd, int flags) {
  Control control{};
  iovec part{const_cast<Packet*>(&packet), sizeof(packet)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    control.align.cmsg_level = SOL_SOCKET;
    control.align.cmsg_type = SCM_RIGHTS;
    control.align.cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
  }
  while (::sendmsg(socket, &message, flags | MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

struct Received {
  Packet packet;
  Fd fd;
};

/// Nothing when none waits (MSG_DONTWAIT).
Result<std::optional<Received>> Receive(int socket, int flags) {
  Control control{};
  Received received;
  iovec part{&received.packet, sizeof(received.packet)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN) return std::optional<Received>();
  if (n < 0 && errno != ECONNRESET) return ErrnoError("recovery link", errno);
  if (n <= 0) return Error(Code::kUnavailable, "the other end of the recovery link is closed");
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
    received.fd.Reset(fd);
  }
  if (n != sizeof(Packet) || received.packet.magic != kMagic) {
    return Error(Code::kInvalid, "not a message of the recovery link, version 1");
  }
  return std::optional(std::move(received));
}

}  // namespace

Status RecoveryLink::Ready() {
  if (!connected()) return Ok();
  if (const int error = Send(socket_.get(), {.kind = Kind::kReady}, -1, 0); error != 0) {
    return ErrnoError("recovery link", error);
  }
  return Ok();
}

Result<Commit> RecoveryLink::Quiesce(const Quiesced& place) {
  const Packet here{.kind = Kind::kQuiesced, .first = place.applied, .second = place.durable};
  if (Send(socket_.get(), here, -1, 0) != 0) {
    return Error(Code::kUnavailable, "the host of this worker is gone");
  }
  auto received = MUSTER_TRY(Receive(socket_.get(), 0));
  if (!received || received->packet.kind != Kind::kCommit || !received->fd.valid()) {
    return Error(Code::kUnavailable, "the host sent no next generation");
  }
  return Commit{Generation(received->packet.first), std::move(received->fd)};
}

Result<std::pair<RecoveryHost, Fd>> RecoveryHost::Create() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) < 0) {
    return ErrnoError("recovery link", errno);
  }
  return std::pair(RecoveryHost(Fd(ends[0])), Fd(ends[1]));
}

Result<std::optional<RecoveryHost::Message>> RecoveryHost::Receive() {
  const auto received = MUSTER_TRY(os::Receive(socket_.get(), MSG_DONTWAIT));
  if (!received) return std::optional<Message>();
  switch (received->packet.kind) {
    case Kind::kReady:
      return std::optional(Message{});
    case Kind::kQuiesced:
      return std::optional(Message{Quiesced{received->packet.first, received->packet.second}});
    case Kind::kCommit:
      break;
  }
  return Error(Code::kInvalid, "a message that no worker sends");
}

Status RecoveryHost::Commit(Generation generation, int arena) {
  const Packet packet{.kind = Kind::kCommit, .first = generation.value()};
  if (Send(socket_.get(), packet, arena, MSG_DONTWAIT) == 0) return Ok();
  return Error(Code::kUnavailable, "the worker cannot be told of the next generation");
}

}  // namespace muster::os
