#pragma once
// One agent that joined, on the coordinator's side: a Node whose orders go into the agent's event
// stream and whose reports come as batches. Kept by the gang; the hub finds it while it lives. The
// coordinator's loop thread only.
//
// Where another coordinator is to follow one that dies, nothing leaves before it is in the saved
// state: neither an order nor the word that a report was taken (Release). What is not in it happens
// again, from the agent's own memory.

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/node/node.h"
#include "agent/remote/batch.h"
#include "net/event_stream.h"
#include "os/event_loop.h"

namespace muster::agent {

struct SentOrder {
  std::uint64_t number = 0;
  std::string text;
};

/// Where a peer stood.
struct PeerPlace {
  std::string name;
  RankRange ranks;
  bool seated = false, met = false;
  std::optional<RankRange> before;
  std::uint64_t orders = 0, reports = 0;
  std::vector<SentOrder> unseen{};
};

class RemotePeer final : public Node, public std::enable_shared_from_this<RemotePeer> {
 public:
  RemotePeer(os::EventLoop& loop, std::string name, std::uint32_t ranks,
             std::chrono::milliseconds lease);
  ~RemotePeer() override;
  /// In the place of one that died with its coordinator.
  void GoOn(PeerPlace place);
  PeerPlace place() const;

  const std::string& name() const { return name_; }
  void HearWith(OnReport on_report) { on_report_ = std::move(on_report); }
  /// From here on orders wait for Release, and `on_order` hears of each that does.
  void HoldBack(std::function<void()> on_order) { on_order_ = std::move(on_order); }
  /// Every order and report until now is in the saved state.
  void Release();
  /// There are reports that may not be called taken yet.
  bool owes() const { return on_order_ && kept_reports_ < newest_to_keep_; }

  void Send(const Order& order) override;
  /// What an agent knows comes by itself, ten times a second.
  void Poll() override {}

  /// The agent takes its orders from `stream`, from behind `seen` on.
  void Open(net::EventStream stream, std::uint64_t seen);
  /// It has its ticket: it took orders, or reported.
  bool met() const { return met_; }
  /// Its node came once more, without the ticket.
  void Replace();
  /// The coordinator itself stood still for so long: nobody could have been heard.
  void Forgive(std::chrono::nanoseconds standstill) { heard_ += standstill; }
  /// Reports behind those that it has. Invalid names what is wrong with them.
  Status Take(const ReportBatch& batch);
  /// It said that its node ended: who led it may leave as soon as it hears that this was taken.
  bool ended() const { return ended_; }
  /// The newest report that the agent need not send again.
  std::uint64_t taken() const { return owes() ? kept_reports_ : reports_; }

 private:
  void Deliver();
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
  bool met_ = false;
  bool ended_ = false;
  std::optional<RankRange> before_;  ///< its seat until lately: reports of it may be on their way
  std::uint64_t orders_ = 0;         ///< sent so far
  std::uint64_t kept_orders_ = 0;    ///< of them, that may leave
  std::uint64_t delivered_ = 0;      ///< of them, by this stream or one before
  std::deque<SentOrder> unseen_;     ///< that the agent may not have
  std::uint64_t reports_ = 0;        ///< taken so far
  std::uint64_t kept_reports_ = 0;   ///< of them, that are in the saved state
  std::uint64_t newest_to_keep_ = 0;
  bool follows_ = false;  ///< the process before may have taken more than it saved
  std::function<void()> on_order_;
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
