#pragma once
// The daemon of libmicrohttpd inside of our loop, and what its connections share. Internal to the
// server (http_server.h has the contract); loop thread only.

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "net/http_server.h"
#include "net/router.h"
#include "net/stream_state.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace muster::net {

class ServerConnection;

struct ServerRoute {
  HttpServer::Handler handler;        ///< or
  HttpServer::StreamHandler streams;  ///< exactly one is set
  Access access;
};

class ServerCore {
 public:
  ServerCore(os::EventLoop& loop, ServerOptions options);
  ServerCore(const ServerCore&) = delete;
  ServerCore& operator=(const ServerCore&) = delete;
  ~ServerCore();

  Status Start();
  void Add(Method method, std::string_view pattern, ServerRoute route);

  os::EventLoop& loop() { return loop_; }
  const ServerOptions& options() const { return options_; }
  const Address& address() const { return address_; }
  ServerCounters& counters() { return counters_; }
  const RouteTable& table() const { return table_; }
  const ServerRoute& route(std::size_t number) const { return routes_[number]; }

  /// A connection came or is about to be closed.
  ServerConnection* Opened(MHD_Connection* connection);
  void Closed(ServerConnection* connection);
  /// libmicrohttpd has something to do that its descriptors do not show: a resumed connection.
  void RunSoon();
  /// `stream` has ended; its owner hears of it when libmicrohttpd is not running.
  void Ended(std::shared_ptr<StreamState> stream) { ended_.push_back(std::move(stream)); }

 private:
  MHD_Daemon* StartDaemon(Fd listening);
  void Run();
  void SetTimeout();
  void RunAfter(std::chrono::nanoseconds delay);
  void SendHeartbeats();

  os::EventLoop& loop_;
  ServerOptions options_;
  Address address_;
  ServerCounters counters_;
  RouteTable table_;
  std::vector<ServerRoute> routes_;
  std::unordered_map<ServerConnection*, std::unique_ptr<ServerConnection>> connections_;
  std::vector<std::shared_ptr<StreamState>> ended_;
  MHD_Daemon* daemon_ = nullptr;
  bool running_ = false;  ///< libmicrohttpd is on the stack
  std::optional<os::WatchId> watch_;
  std::optional<os::TimerId> timeout_;
  bool soon_ = false;  ///< timeout_ is set for now
  std::optional<os::TimerId> heartbeat_;
};

}  // namespace muster::net
