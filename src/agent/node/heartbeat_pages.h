#pragma once
// The heartbeat pages of a node's ranks. A page outlives its worker, so what it published before a
// SIGKILL is still read. Single owner thread.

#include <functional>
#include <string>
#include <vector>

#include "agent/launch/rank_range.h"
#include "os/heartbeat.h"

namespace muster::agent {

/// Under which the page of a rank is kept (keep/kept.h).
std::string PageName(Rank rank);

class HeartbeatPages {
 public:
  using OnStep = std::function<void(Rank, const os::StepRecord&)>;

  static Result<HeartbeatPages> Create(RankRange ranks);
  /// Pages that another process of ours made, by rank; records up to `sequences` were taken.
  static Result<HeartbeatPages> Adopt(RankRange ranks, std::vector<Fd> pages,
                                      std::vector<std::uint64_t> sequences);

  int fd(Rank rank) const { return pages_[ranks_.IndexOf(rank)].fd(); }
  os::Pulse Read(Rank rank) const { return pages_[ranks_.IndexOf(rank)].Read(); }
  /// Takes every new record of every rank; each rank's own come in order.
  void Drain(const OnStep& on_step);
  /// Of each rank, the last record that was taken.
  const std::vector<std::uint64_t>& sequences() const { return sequence_; }
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
