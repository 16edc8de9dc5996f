#pragma once
// HTTP/1.1 requests and Server-Sent Events in the caller's event loop, over connections that are
// used again. libcurl speaks the protocol; proxies, redirects, cookies and environment variables
// are left out. A name (not an address, not localhost) is looked up by a thread of libcurl's own.
//
// With a pinned fingerprint an https server must show exactly that certificate, which is checked in
// the handshake: of a request or a token not a byte is sent to another one. Without a pin the
// system's authorities decide. A token goes over plain http to loopback only.
//
// Loop thread only. Callbacks come from the loop, never from inside of a call into the client; they
// may start and cancel calls and destroy the client.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/strong_id.h"
#include "net/auth.h"
#include "net/http_message.h"
#include "net/retry_policy.h"
#include "net/sse.h"
#include "os/event_loop.h"

namespace muster::net {

struct ClientOptions {
  std::optional<Fingerprint> pin;
  std::optional<JoinToken> token;  ///< sent with every request
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
  /// How long an unused connection is kept. Less than the server keeps it, so that a request does
  /// not meet its end.
  std::chrono::seconds idle_connection{20};
  unsigned idle_connections = 64;
  std::uint64_t seed = 1;  ///< of the waits between attempts
};

struct ClientRequest {
  Method method = Method::kGet;
  std::string url;
  std::vector<Header> headers;
  std::string body;  ///< of POST, PUT and PATCH
  std::string content_type = "application/json";
  std::chrono::milliseconds timeout = std::chrono::seconds(30);  ///< of one attempt, as a whole
  Bytes max_response = 16_MiB;
  RetryOptions retry;
};

struct StreamRequest {
  std::string url;
  std::vector<Header> headers;
  std::string last_event_id;  ///< where to go on; empty for a first time
  std::chrono::milliseconds answer_timeout = std::chrono::seconds(10);
  /// Without a byte for so long, heartbeats included, the stream is given up.
  std::chrono::milliseconds silence = std::chrono::seconds(30);
  SseLimits limits;
};

struct StreamListener {
  std::function<void()> on_open;  ///< the server took the request; may be empty
  std::function<void(const Event&)> on_event;
  /// Once, last. Unavailable: the server ended the stream or went away, the connection broke.
  /// Deadline: silence. Else what the server answered, or Denied for another certificate.
  std::function<void(const Error&)> on_end;
};

using CallId = StrongId<struct CallTag, std::uint64_t>;

class ClientCore;

/// What can be asked of servers: by an HttpClient, or in a simulation without connections.
class HttpCalls {
 public:
  using Done = std::function<void(Result<Response>)>;
  virtual ~HttpCalls() = default;
  /// `done` gets an answer of any status (Successful in http_message.h takes it further), or why
  /// there is none: Invalid, Unavailable, Deadline, Denied, Precondition (too large).
  virtual CallId Send(ClientRequest request, Done done) = 0;
  virtual CallId Listen(StreamRequest request, StreamListener listener) = 0;
  /// Its callbacks do not come any more. Unknown and finished ones are fine.
  virtual void Cancel(CallId call) = 0;
};

class HttpClient final : public HttpCalls {
 public:
  /// `loop` outlives the client.
  static Result<std::unique_ptr<HttpClient>> Create(os::EventLoop& loop, ClientOptions options);
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient() override;  ///< cancels what is under way

  CallId Send(ClientRequest request, Done done) override;
  CallId Listen(StreamRequest request, StreamListener listener) override;
  void Cancel(CallId call) override;

 private:
  explicit HttpClient(std::unique_ptr<ClientCore> core);
  std::unique_ptr<ClientCore> core_;
};

}  // namespace muster::net
