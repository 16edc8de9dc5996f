#include "net/local_access.h"

#include <fmt/format.h>

#include <string>

#include "net/address.h"

namespace muster::net {
namespace {

bool IsOurs(const Address& address, std::uint16_t port) {
  return IsLoopback(address) && address.port == port;
}

}  // namespace

Status CheckLocalAccess(const Request& request, std::uint16_t port, bool tls) {
  const auto host = FindHeader(request.headers, "Host");
  if (!host || CountHeaders(request.headers, "Host") != 1) {
    return Error(Code::kDenied, "a request needs one Host header");
  }
  auto address = ParseAddress(*host);
  // The port may be left out where it is the scheme's own.
  if (!address) address = ParseAddress(fmt::format("{}:{}", *host, tls ? 443 : 80));
  if (!address || !IsOurs(*address, port)) {
    return Error(Code::kDenied, "the Host header names another server than this one",
                 fmt::format("ask localhost:{}", port));
  }
  for (const Header& header : request.headers) {
    if (CountHeaders({header}, "Origin") == 0) continue;
    const auto origin = ParseUrl(header.value);
    if (!origin || origin->tls != tls || origin->target != "/" || !IsOurs(origin->address, port)) {
      return Error(Code::kDenied, "the request comes from a web page of another origin");
    }
  }
  return Ok();
}

}  // namespace muster::net
