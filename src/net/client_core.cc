#include "net/client_core.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "net/address.h"

namespace muster::net {
namespace {

bool HasBody(Method method) {
  return method == Method::kPost || method == Method::kPut || method == Method::kPatch;
}

bool IsIdempotent(Method method) { return method != Method::kPost && method != Method::kPatch; }

std::optional<std::chrono::seconds> RetryAfter(const Response& response) {
  const auto text = FindHeader(response.headers, "Retry-After");
  if (!text) return std::nullopt;
  int seconds = 0;  // the form with a date is for people
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  if (error != std::errc() || end != text->data() + text->size() || seconds < 0) {
    return std::nullopt;
  }
  return std::chrono::seconds(seconds);
}

/// Why a stream has ended whose transfer has.
Error EndOf(bool opened, const std::string& url, Result<Response> outcome) {
  if (opened) {
    if (outcome) return {Code::kUnavailable, "the server ended the event stream " + url};
    return Error(outcome.error()).Within("the event stream broke off");
  }
  if (!outcome) return outcome.error();
  if (outcome->status != 200) return ErrorOf(*outcome).Within("GET " + url);
  return {Code::kPrecondition,
          "GET " + url + " is no event stream, but '" + outcome->content_type + "'"};
}

}  // namespace

ClientCore::ClientCore(os::EventLoop& loop, ClientOptions options)
    : loop_(loop),
      options_(std::move(options)),
      random_(options_.seed),
      curl_(
          loop, options_.idle_connections, [this](void* easy, int code) { DoneWith(easy, code); },
          [this] { DeliverAll(); }) {
  if (options_.pin) pin_.emplace(*options_.pin);
}

ClientCore::~ClientCore() {
  for (auto& [id, call] : calls_) Stop(*call);
  if (soon_) loop_.Remove(*soon_);
}

CallId ClientCore::Send(ClientRequest request, HttpClient::Done done) {
  auto call = std::make_unique<Call>();
  call->request = std::move(request);
  call->request.retry.idempotent |= IsIdempotent(call->request.method);
  call->done = std::move(done);
  return Start(std::move(call));
}

CallId ClientCore::Listen(StreamRequest request, StreamListener listener) {
  auto call = std::make_unique<Call>();
  call->request.url = request.url;
  call->parser = SseParser(request.limits);
  call->stream = std::move(request);
  call->listener = std::move(listener);
  return Start(std::move(call));
}

CallId ClientCore::Start(std::unique_ptr<Call> call) {
  const std::uint64_t id = next_id_++;
  Call& started = *calls_.emplace(id, std::move(call)).first->second;
  started.started = MonotonicClock::now();
  auto url = CheckTarget(started.request.url);
  if (!url) {
    started.failed = url.error();
    Touch(id);
    DeliverSoon();
    return CallId(id);
  }
  started.request.url = std::move(*url);
  Begin(id);
  return CallId(id);
}

/// In our own spelling, so that libcurl's reader of URLs finds nothing to differ about.
Result<std::string> ClientCore::CheckTarget(const std::string& url) const {
  const Url parsed = MUSTER_TRY(ParseUrl(url));
  if (!parsed.tls && options_.pin) {
    return Error(Code::kInvalid, "a server whose certificate is pinned is not asked over http",
                 "write https://" + FormatAddress(parsed.address));
  }
  if (!parsed.tls && options_.token && !IsLoopback(parsed.address)) {
    return Error(Code::kDenied,
                 "a token is not sent to another host (" + FormatAddress(parsed.address) +
                     ") where everybody on the way can read it",
                 "use https and the server's fingerprint");
  }
  return FormatUrl(parsed);
}

TransferPlan ClientCore::PlanOf(const Call& call) const {
  TransferPlan plan{.method = call.request.method,
                    .url = call.request.url,
                    .connect_timeout = options_.connect_timeout,
                    .idle_connection = options_.idle_connection};
  if (options_.token) {
    plan.headers.push_back({"Authorization", "Bearer " + options_.token->Reveal()});
  }
  if (call.stream) {
    plan.events = true;
    plan.headers.push_back({"Accept", "text/event-stream"});
    if (!call.stream->last_event_id.empty()) {
      plan.headers.push_back({"Last-Event-ID", call.stream->last_event_id});
    }
  } else {
    plan.timeout = call.request.timeout;
    plan.max_response = static_cast<std::size_t>(call.request.max_response.count);
    if (HasBody(call.request.method)) {
      plan.body = &call.request.body;
      plan.headers.push_back({"Content-Type", call.request.content_type});
    }
  }
  const auto& more = call.stream ? call.stream->headers : call.request.headers;
  plan.headers.insert(plan.headers.end(), more.begin(), more.end());
  return plan;
}

void ClientCore::Begin(std::uint64_t id) {
  Call& call = *calls_.at(id);
  ++call.attempt;
  call.timer.reset();
  call.transfer = std::make_unique<ClientTransfer>(PlanOf(call), pin_ ? &*pin_ : nullptr,
                                                   [this, id] { Touch(id); });
  if (Status added = curl_.Add(call.transfer->easy()); !added) {
    call.failed = added.error();
    call.transfer.reset();
    Touch(id);
    DeliverSoon();
    return;
  }
  by_easy_[call.transfer->easy()] = id;
  if (call.stream) {
    call.heard = MonotonicClock::now();
    WatchSilence(id);
  }
}

void ClientCore::WatchSilence(std::uint64_t id) {
  Call& call = *calls_.at(id);
  const auto most = call.opened ? call.stream->silence : call.stream->answer_timeout;
  const auto since = MonotonicClock::now() - call.heard;
  if (since < most) {
    call.timer = loop_.After(most - since, [this, id] { WatchSilence(id); });
    return;
  }
  call.timer.reset();
  call.failed = Error(Code::kDeadline,
                      (call.opened ? "nothing came on the event stream " : "no answer from ") +
                          call.request.url + " for " + std::to_string(most.count()) + " ms");
  Touch(id);
  DeliverSoon();
}

void ClientCore::Cancel(CallId id) {
  const auto found = calls_.find(id.value());
  if (found == calls_.end()) return;
  Stop(*found->second);
  calls_.erase(found);
}

void ClientCore::Stop(Call& call) {
  if (call.timer) loop_.Remove(*std::exchange(call.timer, std::nullopt));
  if (!call.transfer) return;
  if (!call.code) {
    by_easy_.erase(call.transfer->easy());
    curl_.Remove(call.transfer->easy());
  }
  call.transfer.reset();
}

void ClientCore::Touch(std::uint64_t id) {
  Call* const call = Find(id);
  if (call != nullptr && !std::exchange(call->listed, true)) touched_.push_back(id);
}

void ClientCore::DoneWith(void* easy, int code) {
  const auto found = by_easy_.find(easy);
  MUSTER_CHECK(found != by_easy_.end());
  const std::uint64_t id = found->second;
  by_easy_.erase(found);
  calls_.at(id)->code = code;
  Touch(id);
}

void ClientCore::DeliverSoon() {
  if (soon_) return;
  soon_ = loop_.After(std::chrono::nanoseconds(0), [this] {
    soon_.reset();
    DeliverAll();
  });
}

ClientCore::Call* ClientCore::Find(std::uint64_t id) {
  const auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : found->second.get();
}

void ClientCore::DeliverAll() {
  // What callbacks touch anew waits for the next turn, or they could keep the loop for ever.
  for (const std::uint64_t id : std::exchange(touched_, {})) {
    if (!Deliver(id)) return;
  }
  if (!touched_.empty()) DeliverSoon();
}

bool ClientCore::Deliver(std::uint64_t id) {
  Call* const call = Find(id);
  if (call == nullptr) return true;
  call->listed = false;
  return call->stream ? DeliverStream(id, *call) : DeliverRequest(id, *call);
}

bool ClientCore::DeliverRequest(std::uint64_t id, Call& call) {
  if (!call.failed && !call.code) return true;
  Result<Response> outcome =
      call.failed ? Result<Response>(*call.failed) : call.transfer->Outcome(*call.code);
  if (!call.failed && TryAgain(id, call, outcome)) return true;
  const HttpClient::Done done = std::move(call.done);
  Stop(call);
  calls_.erase(id);
  const std::weak_ptr<bool> alive = alive_;
  done(std::move(outcome));
  return !alive.expired();
}

bool ClientCore::TryAgain(std::uint64_t id, Call& call, const Result<Response>& outcome) {
  Attempt attempt{.number = call.attempt,
                  .elapsed = MonotonicClock::now() - call.started,
                  .sent = call.transfer->Sent()};
  if (outcome) {
    attempt.status = outcome->status;
    attempt.retry_after = RetryAfter(*outcome);
  } else {
    attempt.code = outcome.error().code();
  }
  const RetryDecision decision = DecideRetry(call.request.retry, attempt, random_);
  if (!decision.again) return false;
  call.transfer.reset();
  call.code.reset();
  call.timer = loop_.After(decision.wait, [this, id] { Begin(id); });
  return true;
}

bool ClientCore::DeliverStream(std::uint64_t id, Call& call) {
  const std::weak_ptr<bool> alive = alive_;
  const std::string bytes = call.transfer ? call.transfer->TakeBytes() : std::string();
  call.heard = MonotonicClock::now();
  if (call.transfer && call.transfer->streaming() && !call.opened) {
    if (!OpenStream(id, call)) return false;
    if (Find(id) == nullptr) return true;
  }
  std::vector<Event> events;
  const Status fed =
      call.parser.Feed(bytes, [&events](Event event) { events.push_back(std::move(event)); });
  if (!DeliverEvents(id, events)) return false;
  if (Find(id) == nullptr) return true;
  if (!fed) return EndStream(id, Error(fed.error()));
  if (call.failed) return EndStream(id, std::move(*call.failed));
  if (!call.code) return true;
  return EndStream(id, EndOf(call.opened, call.request.url, call.transfer->Outcome(*call.code)));
}

bool ClientCore::OpenStream(std::uint64_t id, Call& call) {
  call.opened = true;
  if (call.timer) loop_.Remove(*call.timer);  // it was for the answer
  WatchSilence(id);
  const std::weak_ptr<bool> alive = alive_;
  const auto on_open = call.listener.on_open;  // a copy outlives a Cancel inside of it
  if (on_open) on_open();
  return !alive.expired();
}

bool ClientCore::DeliverEvents(std::uint64_t id, const std::vector<Event>& events) {
  if (events.empty()) return true;
  const std::weak_ptr<bool> alive = alive_;
  const auto on_event = Find(id)->listener.on_event;
  for (const Event& event : events) {
    on_event(event);
    if (alive.expired()) return false;
    if (Find(id) == nullptr) return true;
  }
  return true;
}

bool ClientCore::EndStream(std::uint64_t id, Error&& why) {
  Call& call = *Find(id);
  const auto on_end = std::move(call.listener.on_end);
  const Error reason = std::move(why);  // it may live in the call
  Stop(call);
  calls_.erase(id);
  const std::weak_ptr<bool> alive = alive_;
  on_end(reason);
  return !alive.expired();
}

}  // namespace muster::net
