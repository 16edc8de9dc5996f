#pragma once
// Where agents of other hosts join a job: the coordinator's HTTP server. An agent joins, takes its
// orders from an event stream and posts its reports; for the coordinator each is a Node
// (messages.h). Orders are numbered and kept until the agent has seen them, reports are numbered
// and taken once, so a connection that breaks loses and doubles nothing.
//
// An agent whose connection breaks may dial again for a moment (kRedial); one that is silent has
// the lease. After that it is Gone: it hears that it was given up when it comes back.
//
// Where the coordinator is followed by another when it dies, that one's hub finds the same agents,
// at the same socket, and each goes on where the two had come to.
//
// The coordinator's loop thread only.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/coordinator/gang.h"
#include "agent/remote/remote_peer.h"
#include "agent/remote/ticket.h"
#include "net/http_server.h"

namespace muster::agent {

/// Where a hub stood.
struct HubPlace {
  struct Peer {
    std::string agent;
    PeerPlace place;
  };
  std::uint64_t joined = 0;
  std::vector<Peer> peers{};
};

struct HubOptions {
  net::Address address;
  Fd listening;  ///< a socket that listens already; wins over `address`
  std::optional<net::TlsIdentity> tls;
  net::JoinToken token;
  JobTicket ticket;     ///< `agent` is filled in for each
  std::string version;  ///< of muster
  std::optional<HubPlace> place{};
  /// Whoever follows is to know of all that was heard and ordered until now: Release comes once
  /// that is so. `at_once`: before it returns, for orders are waiting. Empty: nobody follows.
  std::function<void(bool at_once)> keep{};
};

class AgentHub {
 public:
  /// A node that joined; whoever makes a Node of it owns it.
  using OnJoin = std::function<void(const NodeName& who, const Gang::MakeNode& make)>;
  /// Listens as the options say.
  using MakeRoutes = std::function<Result<std::unique_ptr<net::HttpRoutes>>(net::ServerOptions)>;

  /// Without `make_routes` an HttpServer.
  static Result<std::unique_ptr<AgentHub>> Listen(os::EventLoop& loop, HubOptions options,
                                                  OnJoin on_join,
                                                  const MakeRoutes& make_routes = {});
  ~AgentHub();

  const net::Address& address() const { return server_->address(); }
  HubPlace place() const;
  /// Makes a Node of each agent that the place of the options names.
  void Rejoin(const OnJoin& on_join);
  /// What was heard and ordered until now is in the saved state.
  void Release();

 private:
  AgentHub(os::EventLoop& loop, HubOptions& options, OnJoin on_join);
  std::shared_ptr<RemotePeer> MakePeer(const std::string& agent, const std::string& name);
  void ReleaseSoon();
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
  std::function<void(bool)> keep_;
  std::map<std::string, std::weak_ptr<RemotePeer>> peers_;                    ///< by agent id
  std::vector<std::pair<std::string, std::shared_ptr<RemotePeer>>> resumed_;  ///< until Rejoin
  std::uint64_t joined_ = 0;
  Instant pulse_{};
  std::optional<os::TimerId> pulse_timer_;
  std::optional<os::TimerId> release_timer_;
  std::unique_ptr<net::HttpRoutes> server_;
};

}  // namespace muster::agent
