#include "net/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace muster::net {
namespace {

constexpr std::size_t kMostText = 4096;
constexpr std::size_t kMostName = 253;   // RFC 1035
constexpr std::size_t kMostLabel = 63;   // RFC 1035
constexpr std::size_t kMostShown = 120;  // of a wrong text in an error

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '-' || c == '_';
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string Shown(std::string_view text) {
  return "'" + CutText(PlainLine(text.substr(0, kMostShown * 2)), kMostShown) + "'";
}

Error Wrong(std::string_view text, std::string_view why, std::string hint = {}) {
  return {Code::kInvalid, fmt::format("{} is no address: {}", Shown(text), why), std::move(hint)};
}

std::optional<std::string> CanonicalV6(const std::string& text) {
  in6_addr address{};
  if (::inet_pton(AF_INET6, text.c_str(), &address) != 1) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> out{};
  ::inet_ntop(AF_INET6, &address, out.data(), out.size());
  return std::string(out.data());
}

bool IsV4(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
}

/// A host name or an IPv4 address, in lower case.
Result<std::string> CheckName(std::string_view whole, std::string_view host) {
  if (host.empty()) return Wrong(whole, "the host is missing");
  if (host.size() > kMostName) return Wrong(whole, "a host name has at most 253 characters");
  std::string name = Lower(host);
  std::size_t label = 0;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    if (i < name.size() && name[i] != '.') {
      if (!IsNameCharacter(name[i])) {
        return Wrong(whole, fmt::format("{} cannot stand in a host name", Shown({&name[i], 1})));
      }
      continue;
    }
    const std::size_t length = i - label;
    // One dot at the end marks a name as complete.
    if (length == 0 && (i < name.size() || i == 1)) return Wrong(whole, "two dots in a row");
    if (length > kMostLabel) return Wrong(whole, "a part of a host name has at most 63 characters");
    if (length > 0 && (name[label] == '-' || name[i - 1] == '-')) {
      return Wrong(whole, "a part of a host name neither begins nor ends with '-'");
    }
    label = i + 1;
  }
  const std::string last = name.substr(name.find_last_of('.') + 1);
  if (!last.empty() && std::ranges::all_of(last, IsDigit) && !IsV4(name)) {
    return Wrong(whole, fmt::format("{} is no IPv4 address", Shown(name)),
                 "it has four numbers from 0 to 255, such as 10.0.0.7");
  }
  return name;
}

Result<std::uint16_t> CheckPort(std::string_view whole, std::string_view port, PortZero zero) {
  if (port.empty()) return Wrong(whole, "the port is missing behind ':'", "write HOST:PORT");
  if (!std::ranges::all_of(port, IsDigit)) {
    return Wrong(whole, fmt::format("{} is no port number", Shown(port)));
  }
  std::uint32_t value = 0;
  for (const char c : port) {
    value = std::min<std::uint32_t>(value * 10 + static_cast<std::uint32_t>(c - '0'), 100'000);
  }
  if (value > 65535) return Wrong(whole, fmt::format("port {} is above 65535", Shown(port)));
  if (value == 0 && zero == PortZero::kRefused) {
    return Wrong(whole, "nobody can be reached at port 0");
  }
  return static_cast<std::uint16_t>(value);
}

struct Parts {
  std::string host;
  std::optional<std::string_view> port;
};

Result<Parts> SplitBrackets(std::string_view text) {
  const std::size_t end = text.find(']');
  if (end == std::string_view::npos) return Wrong(text, "']' is missing");
  const std::string inside(text.substr(1, end - 1));
  if (inside.find('%') != std::string::npos) {
    return Wrong(text, "zones ('%eth0') are not supported", "use an address that needs none");
  }
  const auto host = CanonicalV6(inside);
  if (!host) return Wrong(text, fmt::format("{} is no IPv6 address", Shown(inside)));
  const std::string_view rest = text.substr(end + 1);
  if (rest.empty()) return Parts{*host, std::nullopt};
  if (rest[0] != ':') return Wrong(text, "':' and a port belong behind ']'");
  return Parts{*host, rest.substr(1)};
}

Result<Parts> Split(std::string_view text) {
  if (text.starts_with('[')) return SplitBrackets(text);
  const std::size_t colon = text.find(':');
  if (colon != text.rfind(':')) {
    const std::string all(text);
    if (CanonicalV6(all)) {
      // "::1:80" is an IPv6 address too; nobody can know which was meant.
      return Wrong(text, "an IPv6 address needs brackets", fmt::format("write [{}]:PORT", all));
    }
    const std::size_t last = text.rfind(':');
    if (CanonicalV6(all.substr(0, last))) {
      return Wrong(text, "an IPv6 address needs brackets",
                   fmt::format("write [{}]:{}", all.substr(0, last), all.substr(last + 1)));
    }
    return Wrong(text, "more than one ':'");
  }
  if (colon == std::string_view::npos) {
    return Parts{MUSTER_TRY(CheckName(text, text)), std::nullopt};
  }
  return Parts{MUSTER_TRY(CheckName(text, text.substr(0, colon))), text.substr(colon + 1)};
}

Status CheckShape(std::string_view text) {
  if (text.empty()) return Wrong(text, "it is empty", "write HOST:PORT");
  if (text.size() > kMostText) return Wrong(text, "it is too long");
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f) return Wrong(text, "spaces and such cannot stand in it");
  }
  return Ok();
}

}  // namespace

Result<Address> ParseAddress(std::string_view text, PortZero port_zero) {
  MUSTER_TRY(CheckShape(text));
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    std::string_view rest = text.substr(scheme + 3);
    return Wrong(text, "it is a URL",
                 fmt::format("write {} alone", Shown(rest.substr(0, rest.find('/')))));
  }
  if (text.find('/') != std::string_view::npos) {
    return Wrong(text, "a path belongs into a URL only", "write HOST:PORT");
  }
  const Parts parts = MUSTER_TRY(Split(text));
  if (!parts.port) return Wrong(text, "the port is missing", "write HOST:PORT");
  return Address{parts.host, MUSTER_TRY(CheckPort(text, *parts.port, port_zero))};
}

std::string FormatAddress(const Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", address.host, address.port)
            : fmt::format("{}:{}", address.host, address.port);
}

bool IsLoopback(const Address& address) {
  if (address.host == "localhost" || address.host == "::1") return true;
  return address.host.starts_with("127.") && IsV4(address.host);
}

Result<Url> ParseUrl(std::string_view text) {
  MUSTER_TRY(CheckShape(text));
  const std::size_t end = text.find("://");
  const std::string scheme = Lower(text.substr(0, end == std::string_view::npos ? 0 : end));
  if (scheme != "http" && scheme != "https") {
    return Error(Code::kInvalid, fmt::format("{} is no URL that we speak", Shown(text)),
                 "it begins with http:// or https://");
  }
  std::string_view rest = text.substr(end + 3);
  if (rest.find('#') != std::string_view::npos) return Wrong(text, "a fragment ('#') is not sent");
  const std::size_t split = std::min(rest.find('/'), rest.find('?'));
  const std::string_view host = rest.substr(0, split);
  // What stands before '@' would be shown in logs; a token has its own way.
  if (host.find('@') != std::string_view::npos) {
    return Error(Code::kInvalid, "a user name in a URL is not supported",
                 "remove what is before '@'");
  }
  const Parts parts = MUSTER_TRY(Split(host));
  Url url{.tls = scheme == "https", .address = {parts.host, 0}};
  url.address.port = url.tls ? 443 : 80;
  if (parts.port) url.address.port = MUSTER_TRY(CheckPort(text, *parts.port, PortZero::kRefused));
  if (split < rest.size()) url.target = rest.substr(split);
  if (url.target[0] == '?') url.target.insert(0, "/");
  return url;
}

std::string FormatUrl(const Url& url) {
  return fmt::format("{}://{}{}", url.tls ? "https" : "http", FormatAddress(url.address),
                     url.target);
}

}  // namespace muster::net
