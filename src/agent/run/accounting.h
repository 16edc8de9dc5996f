#pragma once
// Where the time went: what each fault cost, split into detect, stop, start and replay, and the
// share of the run that did new work. Pure arithmetic over times that others saw; the definitions
// are docs/formats/run-folder.md's: recovery is detect, stop and start, lost is recovery and
// replay.
//
// The replay of a program that publishes no steps is not known: the time that the generation had
// worked is the most that was undone. A program that publishes its first step later is not such a
// one, so both sums are kept until then.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/strong_id.h"
#include "os/heartbeat.h"
#include "profile/report/lost.h"

namespace muster::agent {

using profile::LostSeconds;

/// Every rank is at work again, for the line that the user reads.
struct Recovery {
  std::uint64_t resume_step = 0;  ///< the first step of the new generation follows it
  LostSeconds lost;               ///< so far: nothing of it is replay
  bool no_step_left = false;      ///< the run is over: what was started again had none to do
};

/// What a fault had undone is done again.
struct Replay {
  std::uint64_t first = 0;  ///< the first step that was done again
  std::uint64_t step = 0;   ///< the furthest that a rank had finished before
  LostSeconds lost;         ///< to this fault
};

class Accounting {
 public:
  explicit Accounting(std::uint32_t ranks) : ranks_(ranks) {}

  /// From here on the job has so many ranks.
  void Resize(std::uint32_t ranks) { ranks_.resize(ranks); }
  /// The workers of a generation are being started.
  void Began(Instant now);
  /// `step`: the last that this rank finished, as far as is known; empty of a program that
  /// publishes none.
  void FaultStruck(Instant died, Rank rank, std::optional<std::uint64_t> step);
  void Paused(Instant now);
  void WorkersStopped(Instant now);
  void Stepped(Rank rank, const os::StepRecord& record);
  /// All workers run: of who publishes no steps, that ends the start.
  void Restarted(Instant now, bool publishes);
  /// The run is over, whatever was still to be made up for. When it succeeded, a generation without
  /// a step had none left to do: its start was over when all workers ran.
  void Ended(Instant now, bool succeeded);

  /// Every rank finished its first step of this generation.
  bool AllStepped(Generation generation) const;
  std::optional<Recovery> TakeRecovery();
  std::optional<Replay> TakeReplay();
  /// To all faults; exact when steps were published.
  LostSeconds lost() const;
  std::uint32_t faults() const { return faults_; }
  /// A fault struck before the first step of the run, from which on goodput counts.
  bool StruckEarly() const { return struck_early_; }
  /// The furthest that any rank finished.
  std::uint64_t steps() const;
  /// Nothing when no step was published.
  std::optional<double> Goodput() const;

 private:
  struct RankView {
    std::uint32_t generation = 0;  ///< of its newest record
    std::int64_t first_begin_ns = 0;
    std::uint64_t first_step = 0;
    std::uint64_t furthest = 0;      ///< of all its generations
    std::uint64_t target = 0;        ///< `furthest` when the fault struck
    std::int64_t replay_end_ns = 0;  ///< when it had done `target` again; 0: not there yet
  };
  template <typename A>
  friend void Fields(A& a, Accounting& m) {
    a("ranks", m.ranks_), a("closed", m.closed_), a("closed_silent", m.closed_silent_);
    a("lost", m.lost_), a("silent", m.silent_), a("recovery", m.recovery_);
    a("replay", m.replay_), a("faults", m.faults_), a("open", m.open_);
    a("started", m.started_), a("began", m.began_), a("worked", m.worked_s_);
    a("died", m.died_), a("paused", m.paused_), a("stopped", m.stopped_), a("again", m.again_);
    a("restarted", m.restarted_), a("start_end", m.start_end_);
    a("fault_generation", m.fault_generation_), a("newest_step", m.newest_step_);
    a("first_begin", m.first_begin_ns_), a("last_end", m.last_end_ns_);
    a("useful", m.useful_us_), a("struck_early", m.struck_early_);
  }
  void Close(Instant now);
  void CloseWithoutStep();
  LostSeconds SilentLoss(Instant now) const;
  void Settle();
  void SettleReplay(Instant end);

  std::vector<RankView> ranks_;
  LostSeconds closed_;         ///< to faults that are made up for, or cannot be any more
  LostSeconds closed_silent_;  ///< the same, if no rank ever publishes a step
  LostSeconds lost_;           ///< to the open one, so far
  bool silent_ = true;         ///< no rank published a step yet, nor had one the chance to
  std::optional<Recovery> recovery_;
  std::optional<Replay> replay_;
  std::uint32_t faults_ = 0;

  bool open_ = false;     ///< a fault whose cost is not settled
  bool started_ = false;  ///< its start is over: every rank began a step
  Instant began_{};       ///< the newest generation
  double worked_s_ = 0;   ///< how long the generation that it ended had run
  Instant died_{};
  Instant paused_{};
  Instant stopped_{};
  Instant again_{};      ///< the next generation began
  Instant restarted_{};  ///< all workers of it run
  Instant start_end_{};
  std::uint32_t fault_generation_ = 0;

  bool struck_early_ = false;
  std::uint64_t newest_step_ = 0;
  std::int64_t first_begin_ns_ = 0;
  std::int64_t last_end_ns_ = 0;
  std::uint64_t useful_us_ = 0;  ///< rank 0, first execution of each step
};

}  // namespace muster::agent
