#include "net/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace muster::net {
namespace {

constexpr std::size_t kMostMessage = 1000;  // of another server's words
constexpr std::size_t kMostErrorBody = 64 << 10;
constexpr std::array<std::pair<Method, std::string_view>, 6> kMethods{
    {{Method::kGet, "GET"},
     {Method::kHead, "HEAD"},
     {Method::kPost, "POST"},
     {Method::kPut, "PUT"},
     {Method::kPatch, "PATCH"},
     {Method::kDelete, "DELETE"}}};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool SameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, Lower, Lower);
}

constexpr std::array kCodes{Code::kInvalid,  Code::kNotFound,     Code::kAlreadyExists,
                            Code::kConflict, Code::kPrecondition, Code::kUnauthenticated,
                            Code::kDenied,   Code::kExhausted,    Code::kUnavailable,
                            Code::kDeadline, Code::kCancelled,    Code::kDataLoss,
                            Code::kBug};

std::optional<Code> CodeNamed(std::string_view name) {
  for (const Code code : kCodes) {
    if (TraitsOf(code).name == name) return code;
  }
  return std::nullopt;
}

/// What a bare status means, from a server that is not ours or that failed before it could say.
Code CodeOfStatus(int status) {
  switch (status) {
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kDenied;
    case 404:
    case 410:
      return Code::kNotFound;
    case 408:
    case 504:
      return Code::kDeadline;
    case 409:
      return Code::kConflict;
    case 412:
      return Code::kPrecondition;
    case 429:
    case 502:
    case 503:
      return Code::kUnavailable;
    case 507:
      return Code::kExhausted;
    default:
      return status >= 500 ? Code::kUnavailable : Code::kInvalid;
  }
}

std::string TextMember(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return CutText(PlainLine(found->get_ref<const std::string&>()), kMostMessage);
}

}  // namespace

std::string_view NameOf(Method method) { return kMethods[static_cast<std::size_t>(method)].second; }

std::optional<Method> ParseMethod(std::string_view name) {
  for (const auto& [method, known] : kMethods) {
    if (name == known) return method;
  }
  return std::nullopt;
}

std::optional<std::string_view> FindHeader(const std::vector<Header>& headers,
                                           std::string_view name) {
  for (const Header& header : headers) {
    if (SameName(header.name, name)) return header.value;
  }
  return std::nullopt;
}

std::size_t CountHeaders(const std::vector<Header>& headers, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(
      headers, [name](const Header& header) { return SameName(header.name, name); }));
}

Response ErrorResponse(const Error& error) {
  const CodeTraits& traits = TraitsOf(error.code());
  nlohmann::json body{{"code", traits.name}, {"message", error.message()}};
  if (!error.hint().empty()) body["hint"] = error.hint();
  // Messages may quote a request, and a request is any bytes.
  const auto replace = nlohmann::json::error_handler_t::replace;
  return {.status = traits.http_status,
          .body = nlohmann::json{{"error", body}}.dump(-1, ' ', false, replace) + "\n"};
}

Error ErrorOf(const Response& response) {
  if (response.body.size() <= kMostErrorBody) {
    const auto json = nlohmann::json::parse(response.body, nullptr, false);
    const auto error = json.is_object() ? json.find("error") : json.end();
    if (json.is_object() && error != json.end() && error->is_object()) {
      const auto code = CodeNamed(TextMember(*error, "code"));
      const std::string message = TextMember(*error, "message");
      if (code && !message.empty()) return {*code, message, TextMember(*error, "hint")};
    }
  }
  return {CodeOfStatus(response.status),
          fmt::format("the server answered with status {}", response.status)};
}

Result<Response> Successful(Response response) {
  if (response.status >= 200 && response.status < 300) return response;
  return ErrorOf(response);
}

}  // namespace muster::net
