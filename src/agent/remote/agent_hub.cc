#include "agent/remote/agent_hub.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace muster::agent {
namespace {

constexpr Bytes kMostReports = 12_MiB;  // an agent sends 8 MiB, or one report that is larger

constexpr auto kPulse = std::chrono::milliseconds(250);
constexpr auto kStandstill = std::chrono::seconds(1);

Gang::MakeNode NodeOf(const std::shared_ptr<RemotePeer>& peer) {
  return [peer](OnReport on_report) {
    peer->HearWith(std::move(on_report));
    return peer;
  };
}

}  // namespace

AgentHub::AgentHub(os::EventLoop& loop, HubOptions& options, OnJoin on_join)
    : loop_(loop),
      ticket_(std::move(options.ticket)),
      version_(std::move(options.version)),
      on_join_(std::move(on_join)),
      keep_(std::move(options.keep)) {
  if (!options.place) return;
  joined_ = options.place->joined;
  for (HubPlace::Peer& was : options.place->peers) {
    const auto peer = MakePeer(was.agent, was.place.name);
    peer->GoOn(std::move(was.place));
    resumed_.emplace_back(was.agent, peer);
  }
}

AgentHub::~AgentHub() {
  for (auto* timer : {&pulse_timer_, &release_timer_}) {
    if (*timer) loop_.Remove(**timer);
  }
}

std::shared_ptr<RemotePeer> AgentHub::MakePeer(const std::string& agent, const std::string& name) {
  auto peer = std::make_shared<RemotePeer>(loop_, name, ticket_.ranks_per_node, ticket_.lease);
  if (keep_) peer->HoldBack([this] { ReleaseSoon(); });
  peers_[agent] = peer;
  return peer;
}

void AgentHub::Rejoin(const OnJoin& on_join) {
  for (const auto& [agent, peer] : std::exchange(resumed_, {})) {
    on_join({agent, peer->name()}, NodeOf(peer));
  }
}

HubPlace AgentHub::place() const {
  HubPlace place{.joined = joined_};
  for (const auto& [id, weak] : peers_) {
    if (const auto peer = weak.lock()) place.peers.push_back({id, peer->place()});
  }
  return place;
}

void AgentHub::Release() {
  if (release_timer_) loop_.Remove(*std::exchange(release_timer_, {}));
  for (const auto& [id, weak] : peers_) {
    if (const auto peer = weak.lock()) peer->Release();
  }
}

/// All orders of a turn leave together.
void AgentHub::ReleaseSoon() {
  if (release_timer_) return;
  release_timer_ = loop_.After(std::chrono::nanoseconds(0), [this] {
    release_timer_.reset();
    keep_(true);
  });
}

/// A machine that was suspended, or we alone, must not take the agents' silence for their own.
void AgentHub::Pulse() {
  const Instant now = loop_.Now();
  const auto late = pulse_ == Instant{} ? std::chrono::nanoseconds(0) : now - pulse_ - kPulse;
  pulse_ = now;
  for (const auto& [id, weak] : peers_) {
    const auto peer = weak.lock();
    if (peer && late > kStandstill) peer->Forgive(late);
  }
  pulse_timer_ = loop_.After(kPulse, [this] { Pulse(); });
}

Result<std::unique_ptr<AgentHub>> AgentHub::Listen(os::EventLoop& loop, HubOptions options,
                                                   OnJoin on_join, const MakeRoutes& make_routes) {
  std::unique_ptr<AgentHub> hub(new AgentHub(loop, options, std::move(on_join)));
  net::ServerOptions server{.address = options.address};
  server.listening = std::move(options.listening);
  server.tls = std::move(options.tls);
  server.token = options.token;
  server.max_body = kMostReports;
  server.heartbeat = hub->ticket_.lease / 4;
  if (make_routes) {
    hub->server_ = MUSTER_TRY(make_routes(std::move(server)));
  } else {
    hub->server_ = MUSTER_TRY(net::HttpServer::Listen(loop, std::move(server)));
  }
  AgentHub* self = hub.get();
  self->Pulse();
  hub->server_->Handle(net::Method::kPost, "/v1/agents",
                       [self](const net::Request& request) { return self->Join(request); });
  hub->server_->HandleEvents("/v1/agents/{agent}/orders",
                             [self](const net::Request& request, net::EventStream stream) {
                               return self->OpenOrders(request, std::move(stream));
                             });
  hub->server_->Handle(net::Method::kPost, "/v1/agents/{agent}/reports",
                       [self](const net::Request& request) { return self->TakeReports(request); });
  return hub;
}

Result<net::Response> AgentHub::Join(const net::Request& request) {
  const JoinRequest join = MUSTER_TRY(ParseJoin(request.body));
  if (const std::string why = WhyNotTogether(join, version_); !why.empty()) {
    return Error(Code::kPrecondition, why, "install the same version on both hosts");
  }
  std::erase_if(peers_, [](const auto& entry) { return entry.second.expired(); });
  for (const auto& [id, weak] : peers_) {
    const auto peer = weak.lock();
    if (!peer || peer->name() != join.name) continue;
    if (peer->met()) {
      return Error(Code::kConflict,
                   fmt::format("a node named {} has joined this job already", join.name),
                   "give each agent a --name of its own");
    }
    peer->Replace();  // the answer to its first try was lost
  }
  JobTicket ticket = ticket_;
  ticket.agent = fmt::format("a{}", ++joined_);
  const auto peer = MakePeer(ticket.agent, join.name);
  on_join_({ticket.agent, join.name}, NodeOf(peer));
  if (keep_) keep_(true);
  return net::Response{.body = FormatTicket(ticket)};
}

Result<std::shared_ptr<RemotePeer>> AgentHub::Find(const net::Request& request) {
  const std::string& id = request.bound.at("agent");
  const auto found = peers_.find(id);
  auto peer = found == peers_.end() ? nullptr : found->second.lock();
  if (peer) return peer;
  return Error(Code::kConflict, fmt::format("agent {} was given up", id.substr(0, 40)),
               "its workers end, and it joins again");
}

Status AgentHub::OpenOrders(const net::Request& request, net::EventStream stream) {
  const auto peer = MUSTER_TRY(Find(request));
  std::uint64_t seen = 0;
  if (const auto last = net::FindHeader(request.headers, "Last-Event-ID")) {
    const auto [end, error] = std::from_chars(last->data(), last->data() + last->size(), seen);
    if (error != std::errc{} || end != last->data() + last->size()) {
      return Error(Code::kInvalid, "Last-Event-ID is no number");
    }
  }
  peer->Open(std::move(stream), seen);
  return Ok();
}

Result<net::Response> AgentHub::TakeReports(const net::Request& request) {
  const auto peer = MUSTER_TRY(Find(request));
  const ReportBatch batch = MUSTER_TRY(ParseBatch(request.body));
  MUSTER_TRY(peer->Take(batch));
  if (peer->owes()) keep_(peer->ended());
  return net::Response{.body = fmt::format(R"({{"taken":{}}})", peer->taken())};
}

}  // namespace muster::agent
