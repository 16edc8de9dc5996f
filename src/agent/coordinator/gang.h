#pragma once
// Several nodes that work on one job, as one: an order goes to the nodes that it concerns, and what
// all must answer (Stopped, Ended) is reported once all have. Slots stay, nodes come and go: a
// slot's ranks go down with its node (NodeLost), and the next Start waits until every slot has a
// node again, from the spare ones first. A job that may do with fewer goes on with those that are
// there (Resized), which move up to the first slots, and takes in who joined at its next Start.
// Ranks that are numbered anew cannot go on in place: with another size survivors are stopped
// first.
//
// Owner: the coordinator's loop.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/launch/rank_range.h"
#include "agent/node/node.h"
#include "os/event_loop.h"

namespace muster::agent {

/// Which node: for the hub, and for people.
struct NodeName {
  std::string agent{};  ///< under which the hub knows it; empty: the node of this process
  std::string name;
};

struct MemberPlace {
  NodeName who;
  bool ready = false;         ///< its fork server has loaded, or will not
  bool without_shim = false;  ///< it lost it and needs another before it can work
  bool ended = false;         ///< it said so
};
struct SlotPlace {
  std::optional<MemberPlace> member{};
  bool working = false;
};
/// Where a gang stood, for the one of the process that follows. What was being stopped, ended or
/// started is not in it: that is ordered again (Resume, plan.h).
struct GangPlace {
  Generation generation;
  std::uint32_t told = 0;  ///< slots of which the coordinator knows ranks
  std::vector<SlotPlace> slots{};
  std::vector<MemberPlace> spares{};
};

struct GangOptions {
  std::uint32_t slots = 1;  ///< at most
  std::uint32_t least = 1;  ///< nodes with which a generation may start
  std::uint32_t ranks_per_slot = 1;
  /// How long the first Start waits for more than `least`; a later one does not.
  nanoseconds last_call = std::chrono::seconds(30);
  /// How long a Start waits for `least`; then it has Failed.
  nanoseconds join_limit = std::chrono::minutes(10);
  nanoseconds end_limit = std::chrono::seconds(20);
};

class Gang final : public Node {
 public:
  using MakeNode = std::function<std::shared_ptr<Node>(OnReport)>;

  Gang(const GangOptions& options, os::EventLoop& loop, OnReport on_report);
  /// In the place of one that died. Every member of the place is to be attached before any order.
  Gang(const GangOptions& options, os::EventLoop& loop, OnReport on_report, const GangPlace& place);
  ~Gang() override;

  /// A node that can take a slot; it is made with where its reports go. It gets the lowest slot
  /// that is free, or waits as a spare.
  void Add(const NodeName& who, const MakeNode& make);
  /// The node of a member that was there before; who is none of them is not wanted any more.
  void Attach(const std::string& agent, const MakeNode& make);
  GangPlace place() const;
  /// Ranks of the node of this process; none while it is a spare.
  std::optional<RankRange> OwnRanks() const;

  void Send(const Order& order) override;
  void Poll() override;

 private:
  struct Member : MemberPlace {
    std::uint64_t id = 0;
    std::shared_ptr<Node> node{};
  };
  struct Slot {
    RankRange ranks;
    std::optional<Member> member;
    bool answered = false;  ///< the order that all must answer
    Generation stop{};      ///< of the Stop that it is to answer
    bool working = false;   ///< its ranks were started and not stopped since
  };

  void Do(const order::Start& order);
  void Do(const order::Renew& order);
  void Do(const order::Stop& order);
  void Do(const order::GiveUp& order);
  void Do(const order::End& order);
  void Do(const order::Kill& order);
  void Do(const order::TellWords& order);
  template <typename Other>
  void Do(const Other& order) {
    for (Slot& slot : slots_) {
      if (slot.member) slot.member->node->Send(order);
    }
  }

  void Hear(std::uint64_t member, Report report);
  void On(Slot& slot, const report::Stopped& report);
  void On(Slot& slot, const report::Ended& report);
  void On(Slot& slot, const report::Failed& report);
  void On(Slot& slot, const report::Lost& report);
  void On(Slot& slot, const report::Gone& report);

  void HearSpare(std::deque<Member>::iterator spare, const Report& report);
  void MakeNodeOf(Member& member, const MakeNode& make);
  Slot* SlotOf(std::uint64_t member);
  Slot& SlotOf(Rank rank);
  void Seat();
  static Member Unseat(Slot& slot);
  void Take(Slot& slot, Member member);
  std::uint32_t Seated() const;
  bool MayStart();
  void FillUp();
  bool IsWhole() const;
  void Compact();
  bool Resize(const order::Start& start);
  bool MustClear() const;
  void Clear();
  bool AnyWorks() const;
  void TellSize();
  static void OrderStop(Slot& slot, const order::Stop& order);
  std::vector<order::Start> PartsOf(order::Start whole, bool resized) const;
  void StartWhenComplete();
  void TellWaiting();
  void AnswerIfAllDid();
  void Lose(Slot& slot, report::NodeLost lost);
  void Bury(Member member);
  void Tell(Report report) { on_report_(std::move(report)); }

  const GangOptions options_;
  os::EventLoop& loop_;
  OnReport on_report_;
  std::vector<Slot> slots_;
  std::deque<Member> spares_;
  std::vector<Member> buried_;  ///< gone; destroyed in a later turn, for they may be calling us
  std::uint64_t next_id_ = 1;
  std::optional<order::Start> start_;  ///< waits for nodes
  Instant waits_since_{};
  std::optional<Instant> enough_since_;      ///< `least` are there
  bool restarting_ = false;                  ///< the start is not the first
  bool clearing_ = false;                    ///< survivors are stopped, to be started anew
  Generation generation_{};                  ///< that was started last
  std::uint32_t active_ = 0;                 ///< slots that work in this generation: the first ones
  std::uint32_t told_ = 0;                   ///< as many as the coordinator heard of last
  std::optional<report::Stopped> stopping_;  ///< what was answered so far
  std::optional<report::Ended> ending_;
  std::optional<os::TimerId> waiting_;
  std::optional<os::TimerId> end_timer_;
  std::optional<os::TimerId> burial_;
};

}  // namespace muster::agent
