#include "agent/remote/agent_link.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/remote/batch.h"
#include "agent/wire/wire.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kAgain = milliseconds(50);
constexpr auto kTrouble = seconds(1);
constexpr std::size_t kMostReports = 256;    // of one batch
constexpr std::size_t kMostBytes = 8 << 20;  // the same
constexpr std::size_t kMostWaiting = 32 << 20;
constexpr int kPostsPerLease = 4;

/// What another attempt does not change.
bool IsFinal(const Error& error) {
  switch (error.code()) {
    case Code::kUnavailable:
    case Code::kDeadline:
      return false;
    case Code::kConflict:
    case Code::kInvalid:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kPrecondition:
    case Code::kUnauthenticated:
    case Code::kDenied:
    case Code::kExhausted:
    case Code::kCancelled:
    case Code::kDataLoss:
    case Code::kBug:
      return true;
  }
  return true;
}

Result<net::Response> Checked(Result<net::Response> answer) {
  if (!answer) return answer;
  return net::Successful(std::move(*answer));
}

}  // namespace

AgentLink::AgentLink(os::EventLoop& loop, LinkOptions options, Listener listener)
    : loop_(loop),
      options_(std::move(options)),
      listener_(std::move(listener)),
      reached_(loop.Now()) {}

AgentLink::~AgentLink() {
  for (auto* timer : {&join_timer_, &listen_timer_, &post_timer_}) {
    if (*timer) loop_.Remove(**timer);
  }
}

Result<std::unique_ptr<AgentLink>> AgentLink::Create(os::EventLoop& loop, LinkOptions options,
                                                     Listener listener,
                                                     std::unique_ptr<net::HttpCalls> calls) {
  std::unique_ptr<AgentLink> link(new AgentLink(loop, std::move(options), std::move(listener)));
  link->client_ = std::move(calls);
  if (!link->client_) {
    link->client_ = MUSTER_TRY(
        net::HttpClient::Create(loop, {.pin = link->options_.pin, .token = link->options_.token}));
  }
  return link;
}

std::string AgentLink::UrlOf(const std::string& path) const {
  net::Url url = options_.coordinator;
  url.target = path;
  return net::FormatUrl(url);
}

void AgentLink::Join() {
  client_->Send({.method = net::Method::kPost,
                 .url = UrlOf("/v1/agents"),
                 .body = FormatJoin(options_.join),
                 .timeout = seconds(10)},
                [this](Result<net::Response> answer) { Joined(Checked(std::move(answer))); });
}

void AgentLink::GoOn(LinkPlace place) {
  agent_ = std::move(place.agent);
  lease_ = place.lease;
  ranks_ = place.ranks;
  seen_ = place.seen;
  first_ = place.first;
  for (std::string& report : place.waiting) {
    waiting_bytes_ += report.size();
    waiting_.push_back(std::move(report));
  }
  Listen();
  Post();
}

LinkPlace AgentLink::place() const {
  return {agent_, lease_, ranks_, seen_, first_, {waiting_.begin(), waiting_.end()}};
}

void AgentLink::Joined(Result<net::Response> answer) {
  if (!answer) {
    // A node of our name is there, perhaps our last connection.
    const bool again = answer.error().code() == Code::kConflict;
    return Again(again ? Error(Code::kUnavailable, answer.error().message()) : answer.error(),
                 &join_timer_, [this] { Join(); });
  }
  auto ticket = ParseTicket(answer->body);
  if (!ticket) return Finish(std::move(ticket.error()).Within("the coordinator's answer"));
  Reached();
  agent_ = ticket->agent;
  lease_ = ticket->lease;
  ranks_ = {0, ticket->ranks_per_node};
  listener_.on_ticket(*ticket);
  Listen();
  Post();
}

void AgentLink::Listen() {
  client_->Listen(
      {.url = UrlOf(fmt::format("/v1/agents/{}/orders", agent_)),
       .last_event_id = std::to_string(seen_),
       .silence = lease_},
      {.on_open = [this] { Reached(); },
       .on_event = [this](const net::Event& event) { TakeEvent(event); },
       .on_end =
           [this](const Error& error) { Again(error, &listen_timer_, [this] { Listen(); }); }});
}

void AgentLink::TakeEvent(const net::Event& event) {
  Reached();
  std::uint64_t number = 0;
  const char* const end = event.id.data() + event.id.size();
  if (std::from_chars(event.id.data(), end, number).ptr != end || number > seen_ + 1) {
    return Finish(Error(Code::kDataLoss, fmt::format("order {} came behind order {}",
                                                     event.id.substr(0, 20), seen_)));
  }
  if (ended_ || number <= seen_) return;  // it came before
  auto order = wire::DecodeOrder(event.data, ranks_);
  if (!order) return Finish(std::move(order.error()).Within("the coordinator's order"));
  seen_ = number;
  if (const auto* seat = std::get_if<order::Seat>(&*order)) ranks_.first = seat->first;
  listener_.on_order(*order);
}

void AgentLink::Send(const Report& report) {
  const bool full = waiting_bytes_ > kMostWaiting;
  if (full && std::holds_alternative<report::Progress>(report)) return;
  waiting_.push_back(wire::Encode(report));
  waiting_bytes_ += waiting_.back().size();
  if (!posting_ && !agent_.empty()) PostAfter(milliseconds(0));
}

void AgentLink::Post() {
  if (posting_ || ended_ || agent_.empty()) return;
  posting_ = true;
  if (post_timer_) loop_.Remove(*std::exchange(post_timer_, {}));
  ReportBatch batch{.first = first_, .seen = seen_, .sent = loop_.Now()};
  std::size_t bytes = 0;
  for (const std::string& report : waiting_) {
    if (batch.reports.size() == kMostReports || (bytes > 0 && bytes + report.size() > kMostBytes)) {
      break;
    }
    bytes += report.size();
    batch.reports.push_back(report);
  }
  client_->Send({.method = net::Method::kPost,
                 .url = UrlOf(fmt::format("/v1/agents/{}/reports", agent_)),
                 .body = FormatBatch(batch),
                 .timeout = lease_},
                [this](Result<net::Response> answer) { Posted(Checked(std::move(answer))); });
}

void AgentLink::Posted(Result<net::Response> answer) {
  posting_ = false;
  if (!answer) return Again(answer.error(), &post_timer_, [this] { Post(); });
  Reached();
  const auto json = nlohmann::json::parse(answer->body, nullptr, false);
  const bool whole =
      json.is_object() && json.contains("taken") && json["taken"].is_number_unsigned();
  if (!whole) return Finish(Error(Code::kInvalid, "the coordinator's answer to reports is none"));
  const auto taken = json["taken"].get<std::uint64_t>();
  const std::uint64_t first = first_;
  while (first_ <= taken && !waiting_.empty()) {
    waiting_bytes_ -= waiting_.front().size();
    waiting_.pop_front();
    ++first_;
  }
  if (!waiting_.empty() && first_ > first) return Post();
  // They came, and the coordinator could not keep them yet; an empty batch says that we live.
  PostAfter(waiting_.empty() ? lease_ / kPostsPerLease : kAgain);
}

void AgentLink::PostAfter(milliseconds delay) {
  if (post_timer_) loop_.Remove(*post_timer_);
  post_timer_ = loop_.After(delay, [this] {
    post_timer_.reset();
    Post();
  });
}

void AgentLink::Reached() {
  reached_ = loop_.Now();
  trouble_ = false;
}

void AgentLink::Again(const Error& error, std::optional<os::TimerId>* timer,
                      std::function<void()> what) {
  if (ended_) return;
  const auto without = loop_.Now() - reached_;
  if (IsFinal(error)) return Finish(error);
  if (without > options_.patience) {
    return Finish(Error(error.code(),
                        fmt::format("the coordinator was not reached for {} s: {}",
                                    options_.patience.count() / 1000, error.message()),
                        "start the agent again once it is there"));
  }
  if (without > kTrouble && !std::exchange(trouble_, true)) listener_.on_trouble(error);
  if (*timer) loop_.Remove(**timer);
  *timer = loop_.After(kAgain, [timer, what = std::move(what)] {
    timer->reset();
    what();
  });
}

void AgentLink::Finish(const Error& error) {
  if (std::exchange(ended_, true)) return;
  listener_.on_end(error);
}

}  // namespace muster::agent
