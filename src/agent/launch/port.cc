#include "agent/launch/port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace muster::agent {

Result<ReservedPort> ReservePort() {
  ReservedPort reserved;
  reserved.socket.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int fd = reserved.socket.get();
  if (fd < 0) return ErrnoError("socket", errno);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0) {
    return ErrnoError("bind a port on 127.0.0.1", errno);
  }
  socklen_t size = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) < 0) {
    return ErrnoError("getsockname", errno);
  }
  reserved.port = ntohs(address.sin_port);
  return reserved;
}

}  // namespace muster::agent
