#pragma once
// An event stream that is kept: when it breaks off it is asked for again, behind the last event
// that came, with waits that grow and are drawn (retry_policy.h), until the server says that it is
// of no use: another certificate, no token, no such path. What a server sends twice or leaves out
// across a break is between it and the Last-Event-ID.
//
// Loop thread only. Callbacks may destroy it.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "net/http_client.h"

namespace muster::net {

struct EventSourceOptions {
  StreamRequest stream;
  std::chrono::nanoseconds first_wait = std::chrono::milliseconds(100);
  std::chrono::nanoseconds most_wait = std::chrono::seconds(5);
  std::uint64_t seed = 1;  ///< of the waits: another one in every process, or all come at once
};

struct EventSourceListener {
  std::function<void()> on_open;  ///< of every connection; may be empty
  std::function<void(const Event&)> on_event;
  /// The stream broke off, or did not come about; it is asked for again after `wait`. May be empty.
  std::function<void(const Error& why, std::chrono::nanoseconds wait)> on_lost;
  /// Once, last: trying again would not help.
  std::function<void(const Error&)> on_refused;
};

class EventSource {
 public:
  /// Begins at once. `loop` and `client` outlive it.
  EventSource(os::EventLoop& loop, HttpClient& client, EventSourceOptions options,
              EventSourceListener listener);
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;
  ~EventSource();

  const std::string& last_event_id() const { return options_.stream.last_event_id; }

 private:
  void Begin();
  void Opened();
  void Take(const Event& event);
  void Ended(const Error& why);

  os::EventLoop& loop_;
  HttpClient& client_;
  EventSourceOptions options_;
  EventSourceListener listener_;
  Rng random_;
  std::optional<CallId> call_;
  std::optional<os::TimerId> timer_;
  unsigned failures_ = 0;  ///< since the last event
};

}  // namespace muster::net
