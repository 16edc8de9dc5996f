#pragma once
// Where something listens: "host:port" with a name, an IPv4 address or an IPv6 address in brackets,
// and http(s) URLs of it. What people often type instead is refused with what was meant: a missing
// port, "::1:80" without brackets, a URL where an address belongs. Nothing is resolved here.
// Pure; Invalid is the only error.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::net {

struct Address {
  std::string host;  ///< lower case; IPv6 in canonical form and without brackets
  std::uint16_t port = 0;
  bool operator==(const Address&) const = default;
};

enum class PortZero {
  kRefused,   ///< to dial
  kFreePort,  ///< to listen: the system chooses
};

/// "node7:7070", "10.0.0.7:7070", "[fe80::1]:7070".
Result<Address> ParseAddress(std::string_view text, PortZero port_zero = PortZero::kRefused);
/// With brackets where they are needed; ParseAddress takes it back.
std::string FormatAddress(const Address& address);
/// localhost, 127.0.0.0/8 or ::1.
bool IsLoopback(const Address& address);

struct Url {
  bool tls = false;
  Address address;
  std::string target = "/";  ///< path and query, as sent
  bool operator==(const Url&) const = default;
};

/// "http://HOST[:PORT][/PATH][?QUERY]" or https; no user, no fragment. Without a port 80 or 443.
Result<Url> ParseUrl(std::string_view text);
std::string FormatUrl(const Url& url);

}  // namespace muster::net
