// Our HTTP server and client as a program, for tests against other people's.
//
//   net_peer serve [tls] [token FILE]        one JSON line {"url", "fingerprint"}; ends with its
//   stdin net_peer ask METHOD URL [pin FP] [token FILE] [body TEXT]    {"status", "body"} or
//   {"error"} net_peer listen URL [pin FP] [token FILE] [after ID]         a JSON line per event,
//   at last {"error"}
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "net/http_client.h"
#include "net/http_server.h"

namespace {

using namespace muster;
using net::Request;
using net::Response;
using nlohmann::json;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "net_peer: %s\n", why.c_str());
  std::exit(2);
}

template <typename T>
T Need(Result<T> result) {
  if (!result) Fail(result.error().ToString());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

void Print(const json& line) {
  std::printf("%s\n", line.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

json ToJson(const Error& error) {
  return {{"error", {{"code", TraitsOf(error.code()).name}, {"message", error.message()}}}};
}

struct Words {
  std::vector<std::string> plain;
  std::map<std::string, std::string> named;
  bool tls = false;
};

Words ReadWords(int count, char** words) {
  Words read;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool named = word == "token" || word == "pin" || word == "body" || word == "after";
    if (word == "tls") {
      read.tls = true;
    } else if (named && i + 1 < count) {
      read.named[word] = words[++i];
    } else {
      read.plain.push_back(word);
    }
  }
  return read;
}

void AddRoutes(net::HttpServer& server, std::vector<net::EventStream>& held) {
  server.Handle(net::Method::kGet, "/hello/{name}", [](const Request& request) -> Result<Response> {
    return Response{.body = json{{"hello", request.bound.at("name")}}.dump()};
  });
  server.Handle(net::Method::kPost, "/echo", [](const Request& request) -> Result<Response> {
    return Response{.content_type = "application/octet-stream", .body = request.body};
  });
  // Numbered from behind Last-Event-ID up to ?until=, then the end; without it the stream stays.
  server.HandleEvents("/count", [&held](const Request& request, net::EventStream stream) -> Status {
    const std::string after(net::FindHeader(request.headers, "Last-Event-ID").value_or("0"));
    const auto until = request.query.find("until");
    const int last = until == request.query.end() ? 3 : std::atoi(until->second.c_str());
    for (int i = std::atoi(after.c_str()) + 1; i <= last; ++i) {
      const std::string id = std::to_string(i);
      MUSTER_TRY(stream.Send({.id = id, .type = "number", .data = "line " + id + "\nmore"}));
    }
    if (until == request.query.end()) held.push_back(std::move(stream));
    return Ok();
  });
}

int Serve(const Words& words) {
  const auto loop = Need(os::EventLoop::Create());
  net::ServerOptions options;
  json said;
  if (const auto token = words.named.find("token"); token != words.named.end()) {
    options.token = Need(net::JoinToken::ReadFile(token->second));
  }
  if (words.tls) {
    options.tls = Need(net::MakeTlsIdentity("net_peer", SystemClock().Wall()));
    said["fingerprint"] = options.tls->fingerprint.ToString();
  }
  std::vector<net::EventStream> held;
  const auto server = Need(net::HttpServer::Listen(*loop, std::move(options)));
  AddRoutes(*server, held);
  said["url"] =
      std::string(words.tls ? "https://" : "http://") + net::FormatAddress(server->address());
  Print(said);
  Need(loop->Watch(STDIN_FILENO, EPOLLIN, [&loop](std::uint32_t) {
    std::array<char, 256> bytes{};
    if (::read(STDIN_FILENO, bytes.data(), bytes.size()) <= 0) loop->Stop();
  }));
  Need(loop->Run());
  return 0;
}

std::unique_ptr<net::HttpClient> Client(os::EventLoop& loop, const Words& words) {
  net::ClientOptions options;
  if (const auto pin = words.named.find("pin"); pin != words.named.end()) {
    options.pin = Need(net::Fingerprint::Parse(pin->second));
  }
  if (const auto token = words.named.find("token"); token != words.named.end()) {
    options.token = Need(net::JoinToken::ReadFile(token->second));
  }
  return Need(net::HttpClient::Create(loop, std::move(options)));
}

int Ask(const Words& words) {
  const auto loop = Need(os::EventLoop::Create());
  const auto client = Client(*loop, words);
  const auto method = net::ParseMethod(words.plain[1]);
  if (!method) Fail("no method '" + words.plain[1] + "'");
  net::ClientRequest request{.method = *method, .url = words.plain[2]};
  if (const auto body = words.named.find("body"); body != words.named.end()) {
    request.body = body->second;
  }
  client->Send(std::move(request), [&loop](Result<Response> answer) {
    Print(answer ? json{{"status", answer->status}, {"body", answer->body}}
                 : ToJson(answer.error()));
    loop->Stop();
  });
  Need(loop->Run());
  return 0;
}

int ListenTo(const Words& words) {
  const auto loop = Need(os::EventLoop::Create());
  const auto client = Client(*loop, words);
  net::StreamRequest request{.url = words.plain[1]};
  if (const auto after = words.named.find("after"); after != words.named.end()) {
    request.last_event_id = after->second;
  }
  client->Listen(std::move(request),
                 {.on_event =
                      [](const net::Event& event) {
                        Print({{"id", event.id}, {"type", event.type}, {"data", event.data}});
                      },
                  .on_end =
                      [&loop](const Error& error) {
                        Print(ToJson(error));
                        loop->Stop();
                      }});
  Need(loop->Run());
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const Words read = ReadWords(count, words);
  const std::string verb = read.plain.empty() ? "" : read.plain[0];
  if (verb == "serve") return Serve(read);
  if (verb == "ask" && read.plain.size() == 3) return Ask(read);
  if (verb == "listen" && read.plain.size() == 2) return ListenTo(read);
  Fail("serve, ask METHOD URL or listen URL");
}
