#pragma once
// Where other hosts join a run: the hub with its address, token and identity, the two files of the
// run folder that tell of them, and the ssh sessions that start agents. It can be opened again by
// another process of the run (keep/), at the same socket and under the same identity, so that no
// agent has to be told anything. The coordinator's loop thread only.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/keep/kept.h"
#include "agent/remote/agent_hub.h"
#include "agent/remote/ssh_agents.h"
#include "agent/run/run_folder.h"
#include "agent/run_job.h"

namespace muster::agent {

/// Where one stood.
struct JoinPlace {
  std::string token;
  std::optional<net::TlsIdentity> tls;
  HubPlace hub;
  std::vector<std::string> joined{};
  std::vector<SshPlace> ssh{};
};

struct JoinOptions {
  const RunOptions* job = nullptr;
  RunFolder* folder = nullptr;
  const Clock* clock = nullptr;
  Kept* kept = nullptr;
  net::Address address;
  JobTicket ticket;
  AgentHub::MakeRoutes make_routes{};
  std::function<void(bool at_once)> keep{};  ///< see HubOptions
  std::optional<JoinPlace> place{};
};

class JoinPoint {
 public:
  struct Listener {
    AgentHub::OnJoin on_join;
    /// The ssh that started an agent on `host` ended, `what` says how, and the agent never joined
    /// or did. True: it is started again in a moment.
    std::function<bool(const std::string& what, bool joined)> on_ssh_end;
  };

  /// Of a run's options: one address of this host, so that its store is where agents are and
  /// nowhere else.
  static Result<net::Address> AddressFor(const RunOptions& job);
  /// What `options` points to outlives it.
  static Result<std::unique_ptr<JoinPoint>> Open(os::EventLoop& loop, JoinOptions options,
                                                 Listener listener);
  /// Nobody joins any more, and the files go: who joins now would find nobody.
  ~JoinPoint();

  /// Starts the agents of the job's hosts, or takes over the sessions that are there.
  Status StartSsh();
  AgentHub& hub() { return *hub_; }
  JoinPlace place() const;
  std::vector<int> SshPids() const { return ssh_ ? ssh_->pids() : std::vector<int>(); }
  /// The command for other hosts; nothing when ssh starts it there.
  std::optional<std::string> JoinCommand() const;

 private:
  JoinPoint(os::EventLoop& loop, JoinOptions options, Listener listener);
  Status Listen();
  Result<Fd> Socket();
  void SshEnded(const std::string& host, const std::optional<os::Exit>& exit);

  os::EventLoop& loop_;
  JoinOptions options_;
  Listener listener_;
  std::optional<net::JoinToken> token_;
  std::optional<net::TlsIdentity> tls_;
  std::string url_;
  std::set<std::string> joined_;  ///< nodes that did, by name
  std::unique_ptr<AgentHub> hub_;
  std::unique_ptr<SshAgents> ssh_;
};

}  // namespace muster::agent
