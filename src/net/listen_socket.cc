#include "net/listen_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "net/socket_text.h"

namespace muster::net {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<SocketAddress> Resolve(const Address& address) {
  SocketAddress out;
  std::string host = address.host;
  if (host == "localhost") host = "127.0.0.1";
  if (host == "*") host = "0.0.0.0";
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(address.port);
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    std::memcpy(&out.storage, &v4, sizeof(v4));
    out.size = sizeof(v4);
    return out;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    std::memcpy(&out.storage, &v6, sizeof(v6));
    out.size = sizeof(v6);
    return out;
  }
  return Error(Code::kInvalid, "cannot listen on the name '" + address.host + "'",
               "give an address of this host, or 0.0.0.0 for all of them");
}

}  // namespace

Result<ListenSocket> OpenListenSocket(const Address& address) {
  SocketAddress target = MUSTER_TRY(Resolve(address));
  const std::string what = "listen on " + FormatAddress(address);
  Fd fd(::socket(target.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoError(what, errno);
  // Connections of an earlier server that the kernel still remembers are no reason to refuse.
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd.get(), target.raw(), target.size) < 0 || ::listen(fd.get(), SOMAXCONN) < 0) {
    if (errno == EADDRINUSE) {
      return Error(Code::kAlreadyExists, what + ": another program listens there",
                   "choose another port, or 0 for one that is free");
    }
    return ErrnoError(what, errno);
  }
  Address bound = MUSTER_TRY(BoundAddress(fd.get()));
  return ListenSocket{std::move(fd), std::move(bound)};
}

Result<Address> BoundAddress(int fd) {
  SocketAddress at;
  at.size = sizeof(at.storage);
  int listens = 0;
  socklen_t size = sizeof(listens);
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0) {
    return ErrnoError("look at the listening socket", errno);
  }
  if (listens == 0) return Error(Code::kInvalid, "the socket that was handed over does not listen");
  if (::getsockname(fd, at.raw(), &at.size) < 0) return ErrnoError("getsockname", errno);
  return AddressOf(*at.raw());
}

}  // namespace muster::net
