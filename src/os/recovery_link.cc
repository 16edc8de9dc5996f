#include "os/recovery_link.h"

#include <sys/socket.h>

#include <array>
#include <bit>
#include <cerrno>

#include "os/fd_packet.h"

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

/// 0 or an errno value.
int Send(int socket, const Packet& packet, int fd, int flags) {
  return SendPacket(socket, {&packet, sizeof(packet), &fd, fd >= 0 ? 1U : 0U}, flags);
}

struct Message {
  Packet packet;
  Fd fd;
};

/// Nothing when none waits (MSG_DONTWAIT).
Result<std::optional<Message>> Receive(int socket, int flags) {
  Message message;
  InPacket in{.bytes = &message.packet, .room = sizeof(message.packet)};
  switch (ReceivePacket(socket, &in, flags)) {
    case Received::kNothing:
      return std::optional<Message>();
    case Received::kClosed:
      return Error(Code::kUnavailable, "the other end of the recovery link is closed");
    case Received::kError:
      return ErrnoError("recovery link", errno);
    case Received::kPacket:
      break;
  }
  std::array<Fd, kMostPacketFds> fds;
  for (std::uint32_t i = 0; i < in.fd_count; ++i) fds[i].Reset(in.fds[i]);
  message.fd = std::move(fds[0]);
  if (in.cut || in.size != sizeof(Packet) || message.packet.magic != kMagic) {
    return Error(Code::kInvalid, "not a message of the recovery link, version 1");
  }
  return std::optional(std::move(message));
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
