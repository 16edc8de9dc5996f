#include "net/socket_text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace muster::net {

Address AddressOf(const sockaddr& from) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (from.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &from, sizeof(v4));
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return {text.data(), ntohs(v4.sin_port)};
  }
  if (from.sa_family != AF_INET6) return {};
  sockaddr_in6 v6{};
  std::memcpy(&v6, &from, sizeof(v6));
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  std::string host(text.data());
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) host.erase(0, host.rfind(':') + 1);
  return {host, ntohs(v6.sin6_port)};
}

}  // namespace muster::net
