#pragma once
// An agent's connection to its coordinator: dials out, joins, takes orders from the event stream
// and posts reports. What breaks is dialled again and loses and doubles nothing: orders and reports
// are numbered. Ends when the coordinator gave this agent up, or was out of reach for `patience`.
//
// Loop thread only. Life: Create → Join → orders and reports → on_end, once.

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/launch/rank_range.h"
#include "agent/node/messages.h"
#include "agent/remote/ticket.h"
#include "net/address.h"
#include "net/http_client.h"
#include "os/event_loop.h"

namespace muster::agent {

struct LinkOptions {
  net::Url coordinator;
  std::optional<net::Fingerprint> pin;
  net::JoinToken token;
  JoinRequest join;
  std::chrono::milliseconds patience = std::chrono::minutes(10);
};

/// Where a link stands, for the process that follows when this one dies.
struct LinkPlace {
  std::string agent;
  std::chrono::milliseconds lease{};
  RankRange ranks;
  std::uint64_t seen = 0;
  std::uint64_t first = 1;
  std::vector<std::string> waiting{};
};

class AgentLink {
 public:
  struct Listener {
    std::function<void(const JobTicket&)> on_ticket;
    std::function<void(const Order&)> on_order;
    std::function<void(const Error&)> on_trouble;  ///< once, when it is out of reach
    std::function<void(const Error&)> on_end;
  };

  /// Without `calls` an HttpClient.
  static Result<std::unique_ptr<AgentLink>> Create(os::EventLoop& loop, LinkOptions options,
                                                   Listener listener,
                                                   std::unique_ptr<net::HttpCalls> calls = {});
  ~AgentLink();

  /// Answered by on_ticket; a coordinator that is not there yet is dialled until the patience ends.
  void Join();
  /// In the place of Join: of another process of ours, which died.
  void GoOn(LinkPlace place);
  LinkPlace place() const;
  /// In order. While the coordinator is out of reach they wait, up to kMostWaiting; then what the
  /// heartbeats show is left out.
  void Send(const Report& report);
  /// Every report has been taken, or nobody takes any more.
  bool delivered() const { return ended_ || waiting_.empty(); }

 private:
  AgentLink(os::EventLoop& loop, LinkOptions options, Listener listener);
  std::string UrlOf(const std::string& path) const;
  void Joined(Result<net::Response> answer);
  void Listen();
  void TakeEvent(const net::Event& event);
  void Post();
  void Posted(Result<net::Response> answer);
  void Reached();
  /// After a failure: again in a while, or the end.
  void Again(const Error& error, std::optional<os::TimerId>* timer, std::function<void()> what);
  void PostAfter(std::chrono::milliseconds delay);
  void Finish(const Error& error);

  os::EventLoop& loop_;
  const LinkOptions options_;
  Listener listener_;
  std::unique_ptr<net::HttpCalls> client_;
  RankRange ranks_;
  std::string agent_;  ///< our id; empty before the ticket
  std::chrono::milliseconds lease_{};
  std::uint64_t seen_ = 0;  ///< newest order
  std::deque<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t first_ = 1;  ///< number of the first that waits
  bool posting_ = false;
  bool trouble_ = false;  ///< was told, and it was not reached since
  bool ended_ = false;
  Instant reached_;
  std::optional<os::TimerId> join_timer_;
  std::optional<os::TimerId> listen_timer_;
  std::optional<os::TimerId> post_timer_;
};

}  // namespace muster::agent
