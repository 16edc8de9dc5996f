#pragma once
// Where agents of other hosts join a job: the coordinator's HTTP server. An agent joins, takes its
// orders from an event stream and posts its reports; for the coordinator each is a Node
// (messages.h). Orders are numbered and kept until the agent has seen them, reports are numbered
// and taken once, so a connection that breaks loses and doubles nothing.
//
// An agent whose connection breaks may dial again for a moment (kRedial); one that is silent has
// the lease. After that it is Gone: it hears that it was given up when it comes back.
//
// The coordinator's loop thread only.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/coordinator/gang.h"
#include "agent/remote/ticket.h"
#include "net/http_server.h"

namespace muster::agent {

struct HubOptions {
  net::Address address;
  std::optional<net::TlsIdentity> tls;
  net::JoinToken token;
  JobTicket ticket;     ///< `agent` is filled in for each
  std::string version;  ///< of muster
};

class RemotePeer;

class AgentHub {
 public:
  /// A node that joined; whoever makes a Node of it owns it.
  using OnJoin = std::function<void(const std::string& name, const Gang::MakeNode& make)>;
  /// Listens as the options say.
  using MakeRoutes = std::function<Result<std::unique_ptr<net::HttpRoutes>>(net::ServerOptions)>;

  /// Without `make_routes` an HttpServer.
  static Result<std::unique_ptr<AgentHub>> Listen(os::EventLoop& loop, HubOptions options,
                                                  OnJoin on_join,
                                                  const MakeRoutes& make_routes = {});
  ~AgentHub();

  const net::Address& address() const { return server_->address(); }

 private:
  AgentHub(os::EventLoop& loop, JobTicket ticket, std::string version, OnJoin on_join);
  Result<net::Response> Join(const net::Request& request);
  Status OpenOrders(const net::Request& request, net::EventStream stream);
  Result<net::Response> TakeReports(const net::Request& request);
  void Pulse();
  /// Conflict for one that was given up, or never was.
  Result<std::shared_ptr<RemotePeer>> Find(const net::Request& request);

  os::EventLoop& loop_;
  JobTicket ticket_;
  std::string version_;
  OnJoin on_join_;
  std::map<std::string, std::weak_ptr<RemotePeer>> peers_;  ///< by agent id
  std::uint64_t joined_ = 0;
  Instant pulse_{};
  std::optional<os::TimerId> pulse_timer_;
  std::unique_ptr<net::HttpRoutes> server_;
};

}  // namespace muster::agent
