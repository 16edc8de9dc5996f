#pragma once
// Which rank hangs: of programs on our library, by their heartbeats and by what /proc shows. Layers
// 1 to 3 of the design: a process that is stopped; a phase that takes too long; and among ranks
// that wait for each other in a collective the one that did not come. Pure. Owner: the run loop.
//
//   phase                             limit, from the phase's begin
//   data forward backward optimizer   max(2 s, StepTimes::Limit); 30 s before 8 steps are known
//   checkpoint, eval                  60 s, 30 s without computing and without I/O
//   comm                              none: whoever waits there is a victim of another rank
//   comm, all ranks                   that of a step, 30 s at least: the one with the oldest
//                                     collective, or the lowest
//   comm, in state D                  that of a step, 5 s at least
//   any, stopped by a signal          that of a step
//
// Only time in which it looked counts: who stopped the ranks for a while may have stopped us too.
// What a debugger has is left alone, and with it everybody who waits for it.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/coordinator/step_times.h"
#include "base/clock.h"
#include "os/heartbeat.h"
#include "os/process_sight.h"

namespace muster::agent {

struct RankSight {
  bool alive = false;  ///< its process runs and publishes in this generation
  os::Pulse pulse;
  std::optional<os::ProcessSight> process{};  ///< since the pulse moved; empty: not looked at
};

struct Hang {
  Rank rank;
  std::string what;  ///< "in forward for 1.8 s", "stopped for 1.8 s"
};

class HangWatch {
 public:
  explicit HangWatch(std::uint32_t ranks) : stuck_(ranks) {}

  /// A rank finished a step that took so long.
  void Stepped(std::uint64_t step, std::chrono::nanoseconds took) { steps_.Add(step, took); }
  /// Of the last 64, of all ranks; 0 before the first.
  std::chrono::nanoseconds SlowestStep() const { return steps_.Slowest(); }
  /// Another generation, or a pause: nobody is late.
  void Restart();
  /// What there is to say now; called some ten times a second. The same hang is said once.
  /// `ranks`: all of the job.
  std::optional<Hang> Look(std::span<const RankSight> ranks, Instant now);

 private:
  struct Stuck {
    os::Phase phase{};
    Instant phase_since{};
    std::uint64_t step = 0;
    std::uint64_t cpu_ticks = 0;
    std::chrono::nanoseconds moment{};   ///< since its heartbeat moved, as far as we looked
    std::chrono::nanoseconds idle{};     ///< since it computed or did I/O, of that
    std::chrono::nanoseconds stopped{};  ///< by a signal
    std::chrono::nanoseconds blocked{};  ///< in state D, without computing
    bool traced = false;
    bool told = false;
  };
  std::chrono::nanoseconds StepLimit() const;
  void Note(Stuck& stuck, const RankSight& sight, std::chrono::nanoseconds passed);
  static void See(Stuck& stuck, const os::ProcessSight& sight, std::chrono::nanoseconds passed);
  static std::string Say(const Stuck& stuck, std::chrono::nanoseconds time);
  std::optional<std::string> WhatOf(const Stuck& stuck) const;
  std::optional<std::size_t> WhoKeepsAll(std::span<const RankSight> ranks) const;

  std::vector<Stuck> stuck_;
  StepTimes steps_;
  std::optional<Instant> looked_;
};

}  // namespace muster::agent
