#pragma once
// A model of a node (agent/node): takes the coordinator's orders and reports as NodeRunner promises
// it, with workers that exist in the Truth only. What may be otherwise each time is drawn: how long
// things take, who unwinds in time and who never does, who dies of another's death, what cannot be
// started.

#include <map>
#include <string>
#include <vector>

#include "agent/launch/rank_range.h"
#include "agent/node/node.h"
#include "agent/simulation/truth.h"

namespace muster::agent::simulation {

/// How often what goes wrong on a node by itself, while faults are on.
struct Mishaps {
  double start_error = 0;  ///< of a rank that is to be started
  double slow_start = 0;
  double never_unwinds = 0;  ///< of a rank that is told to
  double dies_late = 0;      ///< of a worker that is stopped: SIGKILL has to wait, in the kernel
};

class NodeModel final : public Node, public WorkerOwner {
 public:
  NodeModel(World& world, Truth& truth, const Program& program, const Mishaps& mishaps,
            std::string name, std::uint32_t ranks, OnReport on_report);
  ~NodeModel() override;

  void Send(const Order& order) override;
  void Poll() override { Publish(); }
  void PeerDied(WorkerId worker) override;
  void Finished(WorkerId worker) override;

  // What happens to it.
  void KillOne(const Ending& ending);
  void HangOne();
  /// At any moment: it is noticed a little later, or by the next order that needs it.
  void KillShim();
  /// That it was lost was heard by nobody, or by nobody who lived to act upon it.
  void MissLossAgain();
  bool has_shim() const { return shim_; }
  /// The agent died; workers outlive it for a moment, or went down with the host.
  void Abandon(bool host_too);
  bool works() const { return !workers_.empty(); }
  bool Runs(Rank rank) const;
  Generation generation() const { return generation_; }

 private:
  struct Worker {
    Rank rank;
    Generation spawned;
    std::uint64_t told = 0;  ///< the newest step that was reported
    bool ends = false;       ///< it is about to
    std::optional<Instant> killed{};
  };
  void Do(const order::Seat& order);
  void Do(const order::Renew&);
  void Do(const order::Start& order);
  void Do(const order::Abort&);
  void Do(const order::Stop& order);
  void Do(const order::Kill& order);
  void Do(const order::TellWords& order);
  void Do(const order::TakeStacks& order);
  void Do(const order::End&);
  template <typename Other>
  void Do(const Other&) {}

  void TellLossSoon();
  void TellLoss();
  void TellWords();
  bool MakesRoom();
  void StartWhenClear();
  bool MayStart(const order::Start& order) const;
  void StartRank(Rank rank, Generation generation);
  void Spawn(Rank rank, Generation generation);
  void StandSoon(WorkerId id, bool quiesced, nanoseconds most);
  void ExitSoon(WorkerId id, Ending ending, nanoseconds most);
  void Exit(WorkerId id, Ending ending, bool by_order);
  void StopNow(std::uint64_t stop);
  void DieLate(WorkerId id);
  void EndAll(bool by_order);
  void Publish();
  void PublishLater();
  std::optional<WorkerId> Any();
  void Tell(Report report) { on_report_(std::move(report)); }

  World& world_;
  Truth& truth_;
  const Program& program_;
  const Mishaps& mishaps_;  ///< change as the history goes
  Lifetime life_;
  const std::string name_;
  OnReport on_report_;
  RankRange ranks_;
  std::map<WorkerId, Worker> workers_;
  std::map<Rank, Generation> starting_;
  Generation generation_{};
  std::vector<order::TellWords> words_;
  std::optional<order::Start> start_;
  bool shim_ = true;
  bool loss_untold_ = false;
  bool loaded_ = false;
  bool stopping_ = false;
  bool publishing_ = false;
  std::uint64_t stop_ = 0;  ///< number of the newest stop
  Generation stop_generation_{}, stopped_{};
  Instant stop_by_{};
};

}  // namespace muster::agent::simulation
