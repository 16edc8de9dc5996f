#pragma once
// What an HTTP exchange carries, as values for server and client alike. Header names are compared
// without case. Single-threaded.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::net {

enum class Method { kGet, kHead, kPost, kPut, kPatch, kDelete };
std::string_view NameOf(Method method);
std::optional<Method> ParseMethod(std::string_view name);

struct Header {
  std::string name;
  std::string value;
};

/// The first header of that name.
std::optional<std::string_view> FindHeader(const std::vector<Header>& headers,
                                           std::string_view name);
std::size_t CountHeaders(const std::vector<Header>& headers, std::string_view name);

/// What came to a server.
struct Request {
  Method method = Method::kGet;
  std::string path;  ///< decoded, without the query: "/v1/agents/n7"
  std::vector<Header> headers;
  std::map<std::string, std::string> query;  ///< of equal names the first
  std::map<std::string, std::string> bound;  ///< what the route's {names} stand for
  std::string body;
  std::string peer;  ///< the other side's address and port
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<Header> headers;  ///< further ones, or all that came to a client
};

/// {"error":{"code":"not_found","message":"…","hint":"…"}} with the status of the code.
Response ErrorResponse(const Error& error);
/// The other way: what a server said with a status of 400 or more, whether or not it is one of
/// ours. Any bytes are taken; what is shown of them is plain text and bounded.
Error ErrorOf(const Response& response);
/// A response of 200 to 299, or its error.
Result<Response> Successful(Response response);

}  // namespace muster::net
