#pragma once
// An HTTP/1.1 server in the caller's event loop: handlers run in the loop's thread, one at a time,
// and must not block. JSON errors of one form (http_message.h), bearer token, TLS with an identity
// of its own, Server-Sent Events. libmicrohttpd speaks the protocol and is driven through its epoll
// descriptor; there is no thread.
//
// Limits against whom it does not trust: a connection that does not bring a whole request within
// request_timeout, counted from its opening or its last answer, is closed, however busy it looks;
// so is one that does not take its answer in that time. A body is bounded before it is held.
//
// Loop thread only. Never destroyed inside of one of its own callbacks.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/fd.h"
#include "net/address.h"
#include "net/auth.h"
#include "net/event_stream.h"
#include "net/http_message.h"
#include "net/tls.h"
#include "os/event_loop.h"

namespace muster::net {

struct ServerOptions {
  Address address{"127.0.0.1", 0};
  Fd listening;  ///< a socket that listens already; wins over `address`
  std::optional<TlsIdentity> tls;
  std::optional<JoinToken> token;  ///< every route asks for it that is not Access::kAnyone
  /// Asked before anything else of a request is looked at: CheckLocalAccess (local_access.h).
  std::function<Status(const Request&)> admit;
  unsigned max_connections = 8192;  ///< more wait in the kernel
  Bytes max_body = 1_MiB;
  Bytes max_head = 16_KiB;         ///< request line and headers
  Bytes max_stream_queue = 4_MiB;  ///< of one event stream
  std::chrono::milliseconds request_timeout = std::chrono::seconds(30);
  std::chrono::seconds stall_timeout{30};  ///< a stream whose reader takes nothing for so long ends
  std::chrono::milliseconds heartbeat = std::chrono::seconds(10);  ///< comments on idle streams
};

struct ServerCounters {
  std::uint64_t connections = 0;  ///< open now
  std::uint64_t accepted = 0;
  std::uint64_t requests = 0;
  std::uint64_t refused = 0;    ///< answered with 400 or more before a handler ran
  std::uint64_t timed_out = 0;  ///< closed at request_timeout, idle ones included
  std::uint64_t streams = 0;    ///< open now
  std::uint64_t slow_readers = 0;
};

enum class Access {
  kToken,   ///< as the server's options say
  kAnyone,  ///< for what gives nothing away: "are you there"
};

class ServerCore;

/// What a server is told to answer: an HttpServer, or in a simulation without connections.
class HttpRoutes {
 public:
  using Handler = std::function<Result<Response>(const Request&)>;
  /// An error is answered as one, and the stream is dropped. Otherwise the stream is the handler's.
  /// Where the reader was before, it says in the header Last-Event-ID.
  using StreamHandler = std::function<Status(const Request&, EventStream)>;

  virtual ~HttpRoutes() = default;
  /// `pattern` as in router.h. Routes are added before requests come.
  virtual void Handle(Method method, std::string_view pattern, Handler handler,
                      Access access = Access::kToken) = 0;
  virtual void HandleEvents(std::string_view pattern, StreamHandler handler,
                            Access access = Access::kToken) = 0;
  virtual const Address& address() const = 0;
};

class HttpServer final : public HttpRoutes {
 public:
  /// `loop` outlives the server. Errors of OpenListenSocket; Precondition where TLS does not start.
  static Result<std::unique_ptr<HttpServer>> Listen(os::EventLoop& loop, ServerOptions options);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  /// Closes every connection; streams end with kServerGone.
  ~HttpServer() override;

  void Handle(Method method, std::string_view pattern, Handler handler,
              Access access = Access::kToken) override;
  void HandleEvents(std::string_view pattern, StreamHandler handler,
                    Access access = Access::kToken) override;

  const Address& address() const override;
  const ServerCounters& counters() const;

 private:
  explicit HttpServer(std::unique_ptr<ServerCore> core);
  std::unique_ptr<ServerCore> core_;
};

}  // namespace muster::net
