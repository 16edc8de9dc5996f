#include "agent/launch/shim_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "agent/shim/wire.h"
#include "base/clock.h"
#include "os/wait_fd.h"
#include "spec/env.h"

namespace muster::agent {
namespace {

constexpr int kControlFd = 3;
// The shim never blocks, so a full socket empties within moments.
constexpr auto kHelloLimit = std::chrono::seconds(20);
constexpr auto kSendLimit = std::chrono::seconds(5);

template <typename T>
std::optional<ShimMessage> As(const shim::Packet& packet) {
  const T* message = packet.As<T>();
  if (message == nullptr) return std::nullopt;
  return *message;
}

std::optional<ShimMessage> Decode(const shim::Packet& packet) {
  const shim::Type type = packet.type();
  if (type == shim::Type::kHello) return As<shim::Hello>(packet);
  if (type == shim::Type::kZygote) return As<shim::Zygote>(packet);
  if (type == shim::Type::kStarted) return As<shim::Started>(packet);
  if (type == shim::Type::kExited) return As<shim::Exited>(packet);
  if (type == shim::Type::kStopped) return As<shim::Stopped>(packet);
  if (type == shim::Type::kSynced) return As<shim::Synced>(packet);
  return std::nullopt;
}

}  // namespace

Result<ShimClient> ShimClient::Start(const ShimStart& start) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
    return ErrnoError("socketpair", errno);
  }
  Fd ours(pair[0]);
  const Fd theirs(pair[1]);
  os::Process process = MUSTER_TRY(os::Spawn({
      .program = start.program,
      .arguments = {"muster-shim", std::to_string(kControlFd), start.id,
                    std::to_string(start.orphan_grace.count()), std::to_string(start.soft_nofile)},
      .environment = spec::ProcessEnviron(),
      .descriptors = {{theirs.get(), kControlFd}},
      .new_session = true,
  }));
  return ShimClient(std::move(ours), std::move(process));
}

ShimClient ShimClient::Adopt(Fd socket, Fd pidfd) {
  return {std::move(socket), os::Process(0, std::move(pidfd))};
}

Status ShimClient::Resync(std::uint64_t request) {
  auto message = shim::Message<shim::Resync>(shim::Type::kResync);
  message.request = request;
  return Send(message);
}

bool ShimClient::gone() const {
  pollfd polled{socket_.get(), 0, 0};
  return ::poll(&polled, 1, 0) > 0 && (polled.revents & POLLHUP) != 0;
}

Result<ShimMessage> ShimClient::AwaitHello() {
  if (!MUSTER_TRY(os::WaitFd(socket_.get(), POLLIN, kHelloLimit))) {
    return Error(Code::kDeadline, "muster-shim does not start");
  }
  auto message = Receive();
  if (message && *message) return **message;
  const auto exit = process_.Wait(std::chrono::seconds(1));
  return Error(Code::kExhausted,
               fmt::format("muster-shim could not start: {}",
                           exit && *exit ? os::Describe(**exit) : "it closed its socket"));
}

Status ShimClient::Send(const void* message, std::size_t size, const std::vector<int>& fds) {
  const Instant deadline = MonotonicClock::now() + kSendLimit;
  for (;;) {
    const int error = shim::SendPacket(socket_.get(), message, size, fds.data(),
                                       static_cast<std::uint32_t>(fds.size()));
    if (error == 0) return Ok();
    const auto left = deadline - MonotonicClock::now();
    if (error == ETOOMANYREFS && left > std::chrono::nanoseconds(0)) {
      // So many descriptors of this user are in flight; they arrive as the shim reads.
      ::poll(nullptr, 0, 1);
      continue;
    }
    if (error != EAGAIN) return ErrnoError("send to muster-shim", error);
    if (!MUSTER_TRY(os::WaitFd(socket_.get(), POLLOUT, left))) {
      return Error(Code::kDeadline, "muster-shim does not read its socket");
    }
  }
}

Status ShimClient::StartZygote(const WorkerFds& fds, std::uint32_t umask) {
  auto message = shim::Message<shim::Spawn>(shim::Type::kStartZygote);
  message.umask = umask;
  return Send(message, {fds.command, fds.input, fds.out, fds.err});
}

Status ShimClient::StartWorker(const WorkerStart& start, const WorkerFds& fds) {
  auto message = shim::Message<shim::Spawn>(shim::Type::kSpawn);
  message.generation = start.generation;
  message.rank = start.rank;
  message.via_zygote = start.via_zygote ? 1 : 0;
  message.extra_fds = static_cast<std::uint32_t>(fds.extra.size());
  message.umask = start.umask;
  std::vector<int> all = {fds.command, fds.input, fds.out, fds.err, fds.out_read, fds.err_read};
  all.insert(all.end(), fds.extra.begin(), fds.extra.end());
  return Send(message, all);
}

Status ShimClient::Signal(int signal, std::uint32_t rank, bool only_if_caught) {
  auto message = shim::Message<shim::Signal>(shim::Type::kSignal);
  message.rank = rank;
  message.signal = signal;
  message.only_if_caught = only_if_caught ? 1 : 0;
  return Send(message);
}

Status ShimClient::Stop(Generation generation, int signal, std::chrono::nanoseconds grace) {
  auto message = shim::Message<shim::Stop>(shim::Type::kStop);
  message.signal = signal;
  message.grace_ns = static_cast<std::uint64_t>(grace.count());
  message.generation = generation.value();
  return Send(message);
}

Status ShimClient::Goodbye() { return Send(shim::Message<shim::Goodbye>(shim::Type::kGoodbye)); }

Status ShimClient::StartHelper(const WorkerFds& fds) {
  return Send(shim::Message<shim::Help>(shim::Type::kHelp),
              {fds.command, fds.input, fds.out, fds.err});
}

Result<std::optional<ShimMessage>> ShimClient::Receive() {
  shim::Packet packet;
  switch (shim::ReceivePacket(socket_.get(), &packet)) {
    case shim::Receive::kNothing:
      return std::optional<ShimMessage>();
    case shim::Receive::kClosed:
      return Error(Code::kUnavailable, "muster-shim is gone");
    case shim::Receive::kMalformed:
      return Error(Code::kInvalid, "muster-shim sent a packet of another version");
    case shim::Receive::kPacket:
      break;
  }
  packet.CloseFds();
  std::optional<ShimMessage> message = Decode(packet);
  if (!message) {
    return Error(Code::kInvalid, fmt::format("muster-shim sent an unknown message {}",
                                             static_cast<unsigned>(packet.type())));
  }
  return message;
}

}  // namespace muster::agent
