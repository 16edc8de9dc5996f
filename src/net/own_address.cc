#include "net/own_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>

#include "base/fd.h"

namespace muster::net {
namespace {

// RFC 5737: belongs to nobody, so it takes the default route.
constexpr const char* kNowhere = "192.0.2.1";
constexpr std::uint16_t kDiscard = 9;

Result<in_addr> Resolve(const std::string& host) {
  in_addr address{};
  if (::inet_pton(AF_INET, host.c_str(), &address) == 1) return address;
  addrinfo hints{};
  hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); failed != 0) {
    return Error(Code::kNotFound, fmt::format("{}: {}", host, ::gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  return reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr;
}

/// The first that is up; loopback when there is no other.
in_addr FirstAddress(const ifaddrs* all) {
  in_addr loopback{};
  loopback.s_addr = htonl(INADDR_LOOPBACK);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const bool up = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!up || one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    return reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
  }
  return loopback;
}

std::string InterfaceOf(const ifaddrs* all, in_addr address) {
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const auto* own = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (own->sin_addr.s_addr == address.s_addr) return one->ifa_name;
  }
  return {};
}

}  // namespace

Result<OwnAddress> FindOwnAddress(const std::string& host) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kDiscard);
  to.sin_addr = MUSTER_TRY(Resolve(host.empty() ? kNowhere : host));
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) < 0) return ErrnoError("getifaddrs", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, &::freeifaddrs);
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return ErrnoError("socket", errno);
  sockaddr_in from{};
  socklen_t size = sizeof(from);
  // Of UDP it only chooses the way.
  const bool way = ::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0 &&
                   ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&from), &size) == 0;
  const in_addr own = way ? from.sin_addr : FirstAddress(all);
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &own, text.data(), text.size());
  return OwnAddress{text.data(), InterfaceOf(all, own)};
}

}  // namespace muster::net
