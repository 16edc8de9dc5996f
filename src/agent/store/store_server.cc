#include "agent/store/store_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace muster::agent {
namespace {

constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::size_t kMostUnsent = 1 << 20;  // beyond it a client is not read from
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

}  // namespace

Result<std::unique_ptr<StoreServer>> StoreServer::Listen(os::EventLoop& loop, std::uint16_t port,
                                                         const std::string& host) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return ErrnoError("socket", errno);
  // Connections of an earlier run that the kernel still remembers are no reason to refuse.
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return Error(Code::kInvalid, fmt::format("{} is no IPv4 address", host));
  }
  address.sin_port = htons(port);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), raw, sizeof(address)) < 0 || ::listen(socket.get(), SOMAXCONN) < 0) {
    return ErrnoError(port == 0 ? "listen on " + host : fmt::format("listen on {}:{}", host, port),
                      errno);
  }
  socklen_t size = sizeof(address);
  if (::getsockname(socket.get(), raw, &size) < 0) return ErrnoError("getsockname", errno);
  const int fd = socket.get();
  std::unique_ptr<StoreServer> server(
      new StoreServer(loop, std::move(socket), ntohs(address.sin_port)));
  server->watch_ = MUSTER_TRY(
      loop.Watch(fd, EPOLLIN, [store = server.get()](std::uint32_t) { store->Accept(); }));
  return server;
}

StoreServer::~StoreServer() {
  if (accept_again_) loop_.Remove(*accept_again_);
  loop_.Remove(watch_);
  for (auto& [id, client] : clients_) loop_.Remove(client.watch);
}

void StoreServer::Accept() {
  for (;;) {
    Fd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) AcceptLater();
      return;  // others: nobody waits, or who waited has gone
    }
    // Requests are small and each is waited for.
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const StoreClientId id(next_id_++);
    const auto watch =
        loop_.Watch(socket.get(), EPOLLIN, [this, id](std::uint32_t events) { Serve(id, events); });
    if (!watch) continue;
    Client& client = clients_[id];
    client.socket = std::move(socket);
    client.watch = *watch;
  }
}

/// Who waits stays in the kernel's queue until descriptors are free again.
void StoreServer::AcceptLater() {
  if (!loop_.Change(watch_, 0)) return;
  accept_again_ = loop_.After(kAcceptPause, [this] {
    accept_again_.reset();
    [[maybe_unused]] const Status changed = loop_.Change(watch_, EPOLLIN);
  });
}

void StoreServer::Serve(StoreClientId id, std::uint32_t events) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  Client& client = found->second;
  if ((events & EPOLLOUT) != 0 && !Send(client)) return Drop(id);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !client.stalled && !Read(client)) {
    return Drop(id);
  }
  if (!Answer(id)) Drop(id);
}

bool StoreServer::Read(Client& client) {
  char buffer[kReadBytes];
  const ssize_t got = ::recv(client.socket.get(), buffer, sizeof(buffer), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  client.reader.Append({buffer, static_cast<std::size_t>(got)});
  return got > 0;
}

bool StoreServer::Answer(StoreClientId id) {
  for (;;) {
    Client& client = clients_.at(id);
    client.stalled = client.out.size() - client.sent > kMostUnsent;
    if (client.stalled) return Send(client);
    auto request = client.reader.Next();
    if (request && !*request) return Send(client);
    const auto replies = [&]() -> Result<std::vector<StoreReply>> {
      if (!request) return request.error();
      return state_.Apply(id, **request);
    }();
    if (!replies) {
      log::Warn("store client dropped", {{"port", port_}, {"why", replies.error().message()}});
      return false;
    }
    for (const StoreReply& reply : *replies) {
      const auto other = clients_.find(reply.client);
      if (other == clients_.end()) continue;
      other->second.out += reply.bytes;
      // An error of another one's connection shows when it is read from.
      if (reply.client != id) [[maybe_unused]]
        const bool sent = Send(other->second);
    }
  }
}

bool StoreServer::Send(Client& client) {
  bool open = true;
  while (client.sent < client.out.size()) {
    const ssize_t sent = ::send(client.socket.get(), client.out.data() + client.sent,
                                client.out.size() - client.sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    open = sent >= 0 || errno == EAGAIN;
    if (sent < 0) break;
    client.sent += static_cast<std::size_t>(sent);
  }
  if (client.sent == client.out.size()) {
    client.out.clear();
    client.sent = 0;
  }
  const bool unsent = !client.out.empty();
  const std::uint32_t read = client.stalled ? 0U : EPOLLIN;
  const Status changed = loop_.Change(client.watch, read | (unsent ? EPOLLOUT : 0U));
  return open && changed.has_value();
}

void StoreServer::Drop(StoreClientId id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  loop_.Remove(found->second.watch);
  clients_.erase(found);
  state_.Forget(id);
}

}  // namespace muster::agent
