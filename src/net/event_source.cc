#include "net/event_source.h"

#include <limits>
#include <utility>

namespace muster::net {

EventSource::EventSource(os::EventLoop& loop, HttpClient& client, EventSourceOptions options,
                         EventSourceListener listener)
    : loop_(loop),
      client_(client),
      options_(std::move(options)),
      listener_(std::move(listener)),
      random_(options_.seed) {
  Begin();
}

EventSource::~EventSource() {
  if (call_) client_.Cancel(*call_);
  if (timer_) loop_.Remove(*timer_);
}

void EventSource::Begin() {
  timer_.reset();
  call_ = client_.Listen(options_.stream, {.on_open = [this] { Opened(); },
                                           .on_event = [this](const Event& event) { Take(event); },
                                           .on_end = [this](const Error& why) { Ended(why); }});
}

void EventSource::Opened() {
  const auto on_open = listener_.on_open;  // copies outlive this object, which they may destroy
  if (on_open) on_open();
}

void EventSource::Take(const Event& event) {
  // Not already when a stream opens: a server that takes every stream and drops it would be asked
  // as fast as can be.
  failures_ = 0;
  options_.stream.last_event_id = event.id;
  const auto on_event = listener_.on_event;
  on_event(event);
}

void EventSource::Ended(const Error& why) {
  call_.reset();
  ++failures_;
  const RetryOptions forever{.attempts = std::numeric_limits<unsigned>::max(),
                             .first = options_.first_wait,
                             .most = options_.most_wait,
                             .total = std::chrono::nanoseconds::max(),
                             .idempotent = true};
  const RetryDecision decision =
      DecideRetry(forever, {.number = failures_, .code = why.code()}, random_);
  if (!decision.again) {
    const auto on_refused = listener_.on_refused;
    on_refused(why);
    return;
  }
  timer_ = loop_.After(decision.wait, [this] { Begin(); });
  const auto on_lost = listener_.on_lost;
  if (on_lost) on_lost(why, decision.wait);
}

}  // namespace muster::net
