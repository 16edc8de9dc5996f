#pragma once
// The heartbeat pages of all ranks and where their steps go: pages → steps/rank-R.jsonl and whoever
// listens. A page outlives its worker, so what it published before a SIGKILL is still drained.
// Single owner thread.

#include <functional>
#include <string>
#include <vector>

#include "agent/run/append_file.h"
#include "os/heartbeat.h"

namespace muster::agent {

class RankBoard {
 public:
  using OnStep = std::function<void(Rank, const os::StepRecord&)>;

  static Result<RankBoard> Create(FileSystem& files, const std::string& folder,
                                  std::uint32_t ranks);

  int fd(Rank rank) const { return pages_[rank.value()].fd(); }
  os::Pulse Read(Rank rank) const { return pages_[rank.value()].Read(); }
  /// Takes every new record of every rank; each rank's own come in order.
  void Drain(const OnStep& on_step);
  /// Tries again what a full disk refused. True when every line is in its file.
  bool Flush();
  /// Records that were overwritten before they were read.
  std::uint64_t missed() const { return missed_; }
  /// Bytes of step lines that are not in a file: dropped, or still waiting for room.
  std::uint64_t unwritten_bytes() const;

 private:
  std::vector<os::HeartbeatReader> pages_;
  std::vector<AppendFile> files_;
  std::vector<std::uint64_t> sequence_;
  std::uint64_t missed_ = 0;
};

/// One line of steps/rank-R.jsonl, newline included.
std::string FormatStep(const os::StepRecord& record);

}  // namespace muster::agent
