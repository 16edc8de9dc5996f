#pragma once
// Layer 4 of hangs: programs that publish no heartbeat, judged by their processes alone. They stand
// still when for a while none of them did I/O, and all are idle, or some compute without end and
// the others wait (collectives that spin look busy). A rank that computes for long looks the same,
// so this is suspected, and acted upon only where the user gave a limit. Pure. Owner: the run loop.
//
//   what                                   told after
//   some ranks finished, the others idle   30 s
//   all idle                               5 min
//   some compute, the others idle          10 min
//   any of them                            the user's limit, when that is less
//
// Writing a line is I/O. All that compute are never suspected. Time in which nobody looked does not
// count, nor does what a debugger has.

#include <optional>
#include <string>
#include <vector>

#include "agent/coordinator/job_state.h"
#include "os/process_sight.h"

namespace muster::agent {

struct Quiet {
  std::vector<Rank> ranks;  ///< those that have not finished
  std::string what;         ///< "rank 1 stands still for 30 s …"
  /// The lowest that a signal stopped, or else that the kernel held all the time (state D): no need
  /// to look further for who is to blame.
  std::optional<Rank> held;
  bool acts = false;  ///< the user's limit is over
};

class QuietWatch {
 public:
  QuietWatch(std::uint32_t ranks, std::optional<nanoseconds> limit)
      : ranks_(ranks), limit_(limit) {}

  /// Another generation, or a pause.
  void Restart();
  /// Of a rank without heartbeat, every second or two. `io`: bytes read and written so far.
  void See(Rank rank, const os::ProcessSight& process, std::uint64_t io, Instant now);
  /// What there is to say now. The same standstill is said once, and once more at the limit.
  std::optional<Quiet> Look(const std::vector<RankStatus>& ranks, Instant now);

 private:
  struct Seen {
    Instant at{};  ///< none: not seen
    std::uint64_t cpu_ticks = 0;
    std::uint64_t io = 0;
    std::optional<bool> computes{};
    bool stopped = false;
    int blocked = 0;  ///< so many times in turn it was in state D
    Instant since{};  ///< it does the same, without I/O
  };
  enum class Kind { kLeft, kIdle, kWait };
  std::string WhatOf(const std::vector<RankStatus>& ranks, Kind kind, nanoseconds lasted) const;

  std::vector<Seen> ranks_;
  std::optional<nanoseconds> limit_;
  std::size_t finished_ = 0;
  Instant finish_{};                     ///< when a rank finished last
  std::optional<Instant> told_, acted_;  ///< of the standstill that began then
};

}  // namespace muster::agent
