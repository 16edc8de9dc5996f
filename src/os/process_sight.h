#pragma once
// A process as /proc shows it at one moment: what it is doing, for who watches over it. Any thread.

#include <sys/types.h>

#include <cstdint>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace muster::os {

enum class ProcessState {
  kRunning,        ///< R
  kSleeping,       ///< S, I
  kUninterrupted,  ///< D: in the kernel, as for a disk; SIGKILL waits too
  kStopped,        ///< T: by a signal
  kTraced,         ///< a debugger has it, whether it runs or not
  kDead,           ///< Z, X: not reaped yet
};

struct ProcessSight {
  ProcessState state = ProcessState::kSleeping;
  std::uint64_t cpu_ticks = 0;    ///< user and system, of all its threads, in clock ticks
  std::uint64_t start_ticks = 0;  ///< since boot: tells it from a later process of its number
  pid_t parent = 0;
  /// One that is dead while others of its threads still leave the kernel cannot be reaped yet.
  std::uint32_t threads = 1;
};

/// NotFound when it is gone.
Result<ProcessSight> SeeProcess(pid_t pid);

/// For who looks at a process again and again: a look is one read of a file that stays open.
class ProcessWatch {
 public:
  /// NotFound when it is gone.
  static Result<ProcessWatch> Open(pid_t pid);
  /// NotFound when it was reaped, whoever has its number by then. A debugger is seen only where it
  /// stopped the process; `SeeProcess` knows of every one and costs three times as much.
  Result<ProcessSight> See() const;

 private:
  explicit ProcessWatch(Fd stat) : stat_(std::move(stat)) {}
  Fd stat_;
};

/// Bytes that its system calls read and wrote so far, files, pipes and terminals alike; not those
/// of recv and send. NotFound when it is gone, Denied for another user's.
Result<std::uint64_t> SeeIo(pid_t pid);

}  // namespace muster::os
