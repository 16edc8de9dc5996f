#pragma once
// Where the time went: what each fault cost, split into detect, stop, start and replay, and the
// share of the run that did new work. Pure arithmetic over times that others saw; the definitions
// are docs/formats/run-folder.md's.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/strong_id.h"
#include "os/heartbeat.h"

namespace muster::agent {

struct LostTime {
  double detect_s = 0;
  double stop_s = 0;
  double start_s = 0;
  double replay_s = 0;
  double Total() const { return detect_s + stop_s + start_s + replay_s; }
};

/// A recovery that is complete, for the line that the user reads.
struct Recovery {
  std::uint64_t resume_step = 0;  ///< the first step of the new generation follows it
  double seconds = 0;             ///< death to the end of every rank's first step
};

class Accounting {
 public:
  explicit Accounting(std::uint32_t ranks) : ranks_(ranks) {}

  void FaultStruck(Instant died, std::uint64_t step);
  void Paused(Instant now);
  void WorkersStopped(Instant now);
  void Stepped(Rank rank, const os::StepRecord& record);
  /// No rank publishes steps: the start is over when all of them run.
  void Restarted(Instant now);

  /// Every rank finished its first step of this generation.
  bool AllStepped(Generation generation) const;
  std::optional<Recovery> TakeRecovery();
  LostTime lost() const { return lost_; }
  std::uint64_t steps() const { return newest_step_; }
  /// Nothing when no step was published.
  std::optional<double> Goodput() const;

 private:
  struct RankView {
    std::uint32_t generation = 0;  ///< of its newest record
    std::int64_t first_begin_ns = 0;
    std::int64_t first_end_ns = 0;
    std::int64_t replay_end_ns =
        0;  ///< end of the step at which the fault struck; 0: not there yet
    std::uint64_t first_step = 0;
  };
  void CloseReplay(Instant now);
  void Settle();

  std::vector<RankView> ranks_;
  LostTime lost_;
  std::optional<Recovery> recovery_;

  bool open_ = false;  ///< a fault whose cost is not settled
  bool started_ = false;
  Instant died_{};
  Instant paused_{};
  Instant stopped_{};
  Instant start_end_{};
  std::uint64_t fault_step_ = 0;
  std::uint32_t fault_generation_ = 0;

  std::uint64_t newest_step_ = 0;
  std::int64_t first_begin_ns_ = 0;
  std::int64_t last_end_ns_ = 0;
  std::uint64_t useful_us_ = 0;  ///< rank 0, first execution of each step
};

}  // namespace muster::agent
