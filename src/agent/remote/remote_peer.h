#pragma once
// One agent that joined, on the coordinator's side: a Node whose orders go into the agent's event
// stream and whose reports come as batches. Kept by the gang; the hub finds it while it lives. The
// coordinator's loop thread only.

#include <chrono>
#include <deque>
#include <optional>
#include <string>

#include "agent/node/node.h"
#include "agent/remote/batch.h"
#include "net/event_stream.h"
#include "os/event_loop.h"

namespace muster::agent {

class RemotePeer final : public Node, public std::enable_shared_from_this<RemotePeer> {
 public:
  RemotePeer(os::EventLoop& loop, std::string name, std::uint32_t ranks,
             std::chrono::milliseconds lease);
  ~RemotePeer() override;

  const std::string& name() const { return name_; }
  void HearWith(OnReport on_report) { on_report_ = std::move(on_report); }

  void Send(const Order& order) override;
  /// What an agent knows comes by itself, ten times a second.
  void Poll() override {}

  /// The agent takes its orders from `stream`, from behind `seen` on.
  void Open(net::EventStream stream, std::uint64_t seen);
  /// The coordinator itself stood still for so long: nobody could have been heard.
  void Forgive(std::chrono::nanoseconds standstill) { heard_ += standstill; }
  /// Reports behind those that it has; the value is the newest that it has now. Invalid names what
  /// is wrong with them.
  Result<std::uint64_t> Take(const ReportBatch& batch);

 private:
  struct Sent {
    std::uint64_t number;
    std::string text;
  };
  void Deliver(const Sent& order);
  void Forget(std::uint64_t seen);
  void Watch();
  void CloseSoon();
  std::chrono::nanoseconds Offset(Instant sent);
  void Lose(const std::string& reason, Instant since);

  os::EventLoop& loop_;
  const std::string name_;
  const std::chrono::milliseconds lease_;
  OnReport on_report_;
  RankRange ranks_;
  bool seated_ = false;
  std::optional<RankRange> before_;  ///< its seat until lately: reports of it may be on their way
  std::uint64_t orders_ = 0;         ///< sent so far
  std::deque<Sent> unseen_;          ///< that the agent may not have
  std::uint64_t reports_ = 0;        ///< taken so far
  /// Of our clock to the agent's: the least of the last minute or two, as clocks drift.
  std::optional<std::chrono::nanoseconds> offset_, offset_before_;
  Instant offset_since_{};
  std::optional<net::EventStream> stream_;
  std::uint64_t streams_ = 0;  ///< opened so far: of an older one nothing is heard any more
  Instant heard_;
  bool gone_ = false;
  std::optional<os::TimerId> lease_timer_;
  std::optional<os::TimerId> redial_timer_;
};

}  // namespace muster::agent
