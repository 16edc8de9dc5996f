#pragma once
// The shared page through which a worker tells the host where it is: one sealed memfd a rank, made
// by the agent, passed to the worker by fd, read by the agent (hangs, progress, report) and later
// by the profiler. The worker writes with plain atomic stores and never makes a system call; the
// page outlives the worker, so what it wrote before a SIGKILL is still there.
//
// The byte layout is docs/formats/heartbeat.md, version 1. Single writer (the worker's training
// thread), any number of readers. All times are CLOCK_MONOTONIC nanoseconds, durations
// microseconds.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "os/memfd.h"

namespace muster::os {

enum class Phase : std::uint32_t {
  kInit,
  kData,
  kForward,
  kBackward,
  kComm,
  kOptimizer,
  kCheckpoint,
  kEval,
  kDone,
  kRefused  ///< it ends because of what it was given: before the first step, or its data is damaged
};
inline constexpr std::size_t kPhaseCount = 10;
std::string_view NameOf(Phase phase);  ///< "init", "data", …

/// One finished optimizer step of one rank. `sequence` counts records of the page from 1 and orders
/// them across generations.
struct StepRecord {
  std::uint64_t sequence = 0;
  std::uint64_t step = 0;  ///< 1 is the first optimizer step of the job
  std::int64_t begin_ns = 0;
  std::uint32_t total_us = 0;
  std::uint32_t generation = 0;  ///< low 32 bits
  float loss = 0;                ///< mean over the global batch; NaN when unknown
  std::array<std::uint32_t, 7>
      phase_us{};  ///< data, forward, backward, comm, optimizer, checkpoint, eval
};
static_assert(sizeof(StepRecord) == 64);

/// What a rank is doing now.
struct Pulse {
  Generation generation;
  Phase phase = Phase::kInit;
  std::uint64_t step = 0;          ///< last finished optimizer step; 0 before the first
  std::uint64_t durable_step = 0;  ///< newest step in a committed checkpoint
  std::uint64_t collective = 0;    ///< sequence number of the last collective entered
  Instant phase_since;
};

struct HeartbeatPage;  // the layout, in heartbeat_page.h

/// The agent's side: creates the memfd and reads it.
class HeartbeatReader {
 public:
  static Result<HeartbeatReader> Create(Rank rank);
  /// A page that another reader made.
  static Result<HeartbeatReader> Adopt(Fd fd);

  int fd() const { return fd_.get(); }  ///< to be passed to the worker
  Pulse Read() const;
  /// Step records with sequence > `after`, oldest first. Records overwritten before they were read
  /// are missing: the gap in `sequence` tells how many.
  std::vector<StepRecord> StepsAfter(std::uint64_t after) const;

 private:
  HeartbeatReader(Fd fd, Mapping mapping) : fd_(std::move(fd)), mapping_(std::move(mapping)) {}
  const HeartbeatPage& page() const;

  Fd fd_;
  Mapping mapping_;
};

/// The worker's side. Maps a page it was given; a foreign or wrong-version page is Invalid.
class HeartbeatWriter {
 public:
  /// A page of its own when `fd` < 0, so that a program without an agent needs no branch. `fd`
  /// stays the caller's and may be closed afterwards. The sequence continues where the last
  /// generation's writer ended; its durable step stays, step and collective start at 0.
  static Result<HeartbeatWriter> Open(int fd, Generation generation);

  /// The worker outlived another one's death and goes on in the next generation: its step stays,
  /// its collectives count from 0 again.
  void GoOnAs(Generation generation);
  void Enter(Phase phase, Instant now);
  void Collective(std::uint64_t sequence);
  void Durable(std::uint64_t step);
  /// Publishes a finished step; `record.sequence` and `record.generation` are filled in here.
  void Step(StepRecord record);
  /// Whether the page holds a step: this rank finished one in this run, in any generation.
  bool HasStepped() const { return sequence_ > 0; }

 private:
  HeartbeatWriter(Mapping mapping, Generation generation);
  HeartbeatPage& page() const;

  Mapping mapping_;
  std::uint64_t sequence_ = 0;  ///< of the last record published
  std::uint32_t generation_ = 0;
};

}  // namespace muster::os
