#pragma once
// One event stream through the simulated network: the server's queue at one end, the agent's
// listener at the other, each of which may learn at another time that the connection is over.
// Internal to network.cc.

#include <functional>
#include <memory>
#include <string>

#include "agent/simulation/network.h"
#include "net/sse.h"
#include "net/stream_state.h"

namespace muster::agent::simulation {

class Pipe final : public net::StreamCarrier, public std::enable_shared_from_this<Pipe> {
 public:
  Pipe(Network& network, std::string host, const net::StreamRequest& request,
       net::StreamListener listener);
  ~Pipe() override;

  const std::string& host() const { return host_; }
  void OnClientEnd(std::function<void()> forget) { forget_ = std::move(forget); }

  /// The server took the request: what it queues travels from now on.
  std::shared_ptr<net::StreamState> Open(const net::ServerOptions& options);
  /// It answered with an error instead.
  void Refuse(const Error& error);
  void FailLater(nanoseconds delay, const Error& error);
  /// None within the limit: the reader gives up.
  void ExpectAnswer();
  /// The server's side is over, and tells the reader.
  void EndServer(net::StreamEnd end);
  /// The reader is gone without a word; the server hears of it when it can.
  void EndClient();
  void Break(bool silently);

  void Wake() override;
  void Cut() override { EndServer(net::StreamEnd::kSlowReader); }

 private:
  void Pump();
  void Arrive(const std::string& bytes);
  void PushComment();
  void Beat();
  void WatchSilence();
  void TellClient(const Error& error);
  void TellServerAfter(nanoseconds delay);

  Network& network_;
  World& world_;
  const std::string host_;
  const net::StreamRequest request_;
  net::StreamListener listener_;
  std::function<void()> forget_;
  std::shared_ptr<net::StreamState> state_;
  net::SseParser parser_;
  nanoseconds beat_{};
  bool pumping_ = false;
  bool client_open_ = true;
  bool broken_ = false;   ///< nothing arrives any more
  bool greeted_ = false;  ///< the reader knows that it was taken
  Instant last_{};        ///< arrival of the newest piece: they keep their order
  Instant heard_{};
};

}  // namespace muster::agent::simulation
