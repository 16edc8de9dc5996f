#include "agent/zygote/zygote.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "agent/shim/child.h"
#include "agent/shim/command.h"
#include "agent/shim/wire.h"
#include "os/clone_into_parent.h"

namespace muster::agent {
namespace {

/// The copy's way from clone to the program's main. What stops it is told to the shim by the page
/// of errors.
[[noreturn]] void RunCopy(const shim::Spawn& spawn, const shim::Packet& packet, WorkerMain main) {
  shim::ErrorPage page;
  page.Map(packet.fds[5]);
  shim::Command command;
  int error = shim::MapCommand(packet.fds[0], &command);
  int fds[3 + shim::kMaxExtraFds];
  for (std::uint32_t i = 0; i < 3; ++i) fds[i] = packet.fds[1 + i];
  for (std::uint32_t i = 0; i < spawn.extra_fds; ++i) {
    fds[3 + i] = packet.fds[shim::kForkFds + i];
  }
  const shim::ChildPlan plan{spawn.parent, spawn.umask, fds, 3 + spawn.extra_fds, nullptr};
  if (error == 0) error = shim::BecomeWorker(plan, command);
  if (error != 0) {
    if (page.errors != nullptr) page.errors[spawn.slot] = error;
    ::_exit(127);
  }
  page.Unmap();
  environ = command.environ;
  std::exit(main(static_cast<int>(command.argc), command.argv));
}

int ErrnoOf(const Error& error) {
  if (error.code() == Code::kPrecondition) return EBUSY;
  return error.code() == Code::kExhausted ? ENOMEM : EAGAIN;
}

/// Makes one copy and says so. The shim is never left without an answer: false when it cannot have
/// one, which is when it is gone.
bool Fork(int fd, const shim::Spawn& spawn, const shim::Packet& packet, WorkerMain main) {
  auto reply = shim::Message<shim::Forked>(shim::Type::kForked);
  reply.request = spawn.request;
  Result<os::Copy> copy =
      os::CloneIntoParent({.cgroup_fd = spawn.in_cgroup != 0 ? packet.fds[4] : -1});
  if (copy && copy->in_child) RunCopy(spawn, packet, main);
  int pidfd = -1;
  if (copy) {
    reply.pid = copy->pid;
    pidfd = copy->pidfd.get();
  } else {
    reply.error = ErrnoOf(copy.error());
  }
  for (;;) {
    const int error = shim::SendPacket(fd, &reply, sizeof(reply), &pidfd, copy ? 1 : 0);
    if (error != EAGAIN && error != ETOOMANYREFS) return error == 0;
    // A full socket has room again once the shim reads; of other programs' descriptors in flight
    // nobody tells.
    pollfd room{fd, static_cast<short>(error == EAGAIN ? POLLOUT : 0), 0};
    ::poll(&room, 1, error == EAGAIN ? -1 : 5);
  }
}

/// Refused, but answered: the shim waits for it.
bool RefuseFork(int fd, const shim::Spawn& spawn) {
  auto reply = shim::Message<shim::Forked>(shim::Type::kForked);
  reply.request = spawn.request;
  reply.error = EMFILE;
  return shim::SendPacket(fd, &reply, sizeof(reply), nullptr, 0) == 0;
}

}  // namespace

std::optional<int> ZygoteFd(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--zygote") != 0) return std::nullopt;
  const std::string_view text = argv[2];
  int fd = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (error != std::errc{} || end != text.data() + text.size() || fd < 3) return std::nullopt;
  return fd;
}

int RunZygote(int fd, WorkerMain main) {
  const auto ready = shim::Message<shim::ReadyToFork>(shim::Type::kReady);
  if (shim::SendPacket(fd, &ready, sizeof(ready), nullptr, 0) != 0) return 1;
  for (;;) {
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, -1) < 0 && errno != EINTR) return 1;
    shim::Packet packet;
    switch (shim::ReceivePacket(fd, &packet)) {
      case shim::Receive::kClosed:
        return 0;
      case shim::Receive::kNothing:
      case shim::Receive::kMalformed:
        continue;
      case shim::Receive::kPacket:
        break;
    }
    const auto* spawn = packet.As<shim::Spawn>();
    bool answered = true;
    if (packet.type() == shim::Type::kFork && spawn != nullptr) {
      const bool whole = spawn->extra_fds <= shim::kMaxExtraFds &&
                         spawn->slot < shim::kMaxWorkers &&
                         packet.fd_count == shim::kForkFds + spawn->extra_fds;
      answered = whole ? Fork(fd, *spawn, packet, main) : RefuseFork(fd, *spawn);
    }
    packet.CloseFds();
    if (!answered) return 1;
  }
}

}  // namespace muster::agent
