#include "agent/store/store_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "agent/store/store_server.h"
#include "os/event_loop.h"
#include "os/fd_packet.h"
#include "os/wait_fd.h"

namespace muster::agent {
namespace {

constexpr auto kAnswers = std::chrono::seconds(5);

struct Request {
  std::uint64_t generation = 0;  ///< 0: close
  char host[256] = {};
};

struct Answer {
  std::uint64_t generation = 0;
  std::uint32_t port = 0;  ///< 0: `code` and `message` say why not
  std::uint32_t code = 0;
  char message[240] = {};
};

template <std::size_t n>
void Copy(std::string_view text, char (&to)[n]) {
  const std::size_t size = std::min(text.size(), n - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

/// The process itself.
class Server {
 public:
  Server(os::EventLoop& loop, Fd socket) : loop_(loop), socket_(std::move(socket)) {}

  Status Run() {
    MUSTER_TRY(loop_.Watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { Read(); }));
    return loop_.Run();
  }

 private:
  void Read() {
    Request request;
    os::InPacket packet{.bytes = &request, .room = sizeof(request)};
    const os::Received received = os::ReceivePacket(socket_.get(), &packet, MSG_DONTWAIT);
    for (std::uint32_t i = 0; i < packet.fd_count; ++i) ::close(packet.fds[i]);
    if (received == os::Received::kNothing) return;
    if (received != os::Received::kPacket) return loop_.Stop();
    if (packet.size == sizeof(request)) Serve(request);
  }

  void Serve(const Request& request) {
    if (request.generation == 0) {
      store_.reset();
      return;
    }
    Answer answer{.generation = request.generation};
    if (!store_ || generation_ != request.generation) {
      store_.reset();
      auto store = StoreServer::Listen(loop_, 0, request.host);
      if (!store) {
        answer.code = static_cast<std::uint32_t>(store.error().code());
        Copy(store.error().message(), answer.message);
        return Send(answer);
      }
      store_ = std::move(*store);
      generation_ = request.generation;
    }
    answer.port = store_->port();
    Send(answer);
  }

  /// Who does not read its answers has died.
  void Send(const Answer& answer) {
    os::SendPacket(socket_.get(), {&answer, sizeof(answer), nullptr, 0}, MSG_DONTWAIT);
  }

  os::EventLoop& loop_;
  Fd socket_;
  std::unique_ptr<StoreServer> store_;
  std::uint64_t generation_ = 0;
};

[[noreturn]] void Serve(Fd socket) {
  ::setsid();
  ::prctl(PR_SET_NAME, "muster-store");
  std::signal(SIGPIPE, SIG_IGN);
  auto loop = os::EventLoop::Create();
  if (loop) static_cast<void>(Server(**loop, std::move(socket)).Run());
  ::_exit(0);
}

Status Ask(int process, const Request& request) {
  const int error = os::SendPacket(process, {&request, sizeof(request), nullptr, 0}, MSG_DONTWAIT);
  if (error == 0) return Ok();
  return Error(Code::kUnavailable, fmt::format("the store process: {}", std::strerror(error)));
}

}  // namespace

Result<Fd> StartStoreProcess() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) < 0) {
    return ErrnoError("socketpair", errno);
  }
  Fd ours(pair[0]);
  Fd theirs(pair[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoError("start the store process", errno);
  if (pid == 0) {
    ours.Reset();
    Serve(std::move(theirs));
  }
  return ours;
}

Result<std::uint16_t> OpenStore(int process, Generation generation, const std::string& host) {
  Request request{.generation = generation.value()};
  Copy(host, request.host);
  MUSTER_TRY(Ask(process, request));
  const Instant deadline = MonotonicClock::now() + kAnswers;
  for (;;) {
    if (!MUSTER_TRY(os::WaitFd(process, POLLIN, deadline - MonotonicClock::now()))) break;
    Answer answer;
    os::InPacket packet{.bytes = &answer, .room = sizeof(answer)};
    const os::Received received = os::ReceivePacket(process, &packet, MSG_DONTWAIT);
    if (received == os::Received::kNothing) continue;
    if (received != os::Received::kPacket) break;
    // One that a process before this one asked for may still be here.
    if (packet.size != sizeof(answer) || answer.generation != request.generation) continue;
    if (answer.port == 0) return Error(static_cast<Code>(answer.code), answer.message);
    return static_cast<std::uint16_t>(answer.port);
  }
  return Error(Code::kUnavailable, "the store process does not answer");
}

Status CloseStore(int process) { return Ask(process, {}); }

}  // namespace muster::agent
