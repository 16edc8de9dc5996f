#pragma once
// The heartbeat pages of a node's ranks. A page outlives its worker, so what it published before a
// SIGKILL is still read. Single owner thread.

#include <functional>
#include <vector>

#include "agent/launch/rank_range.h"
#include "os/heartbeat.h"

namespace muster::agent {

class HeartbeatPages {
 public:
  using OnStep = std::function<void(Rank, const os::StepRecord&)>;

  static Result<HeartbeatPages> Create(RankRange ranks);

  int fd(Rank rank) const { return pages_[ranks_.IndexOf(rank)].fd(); }
  os::Pulse Read(Rank rank) const { return pages_[ranks_.IndexOf(rank)].Read(); }
  /// Takes every new record of every rank; each rank's own come in order.
  void Drain(const OnStep& on_step);
  /// Records that were overwritten before they were read.
  std::uint64_t missed() const { return missed_; }

 private:
  explicit HeartbeatPages(RankRange ranks) : ranks_(ranks) {}

  RankRange ranks_;
  std::vector<os::HeartbeatReader> pages_;
  std::vector<std::uint64_t> sequence_;
  std::uint64_t missed_ = 0;
};

}  // namespace muster::agent
