#pragma once
// The process that the user started: it runs the real one as a child, passes signals on to it, and
// when that dies starts another, which finds what the last one kept (kept.h). It knows nothing of
// jobs, has one thread, little memory and no files of its own to fill a disk with.
//
// When it is killed itself, the child sees its socket hang up and is to end. Orphans of the child
// become its own children, and none is left when Supervise returns.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "agent/keep/kept.h"
#include "base/result.h"
#include "os/signals.h"

namespace muster::agent {

struct SupervisorOptions {
  std::uint32_t lives = 4;  ///< that may end within `period`; 1: nobody follows
  std::chrono::nanoseconds period = std::chrono::seconds(60);
  /// What orphans get when nobody follows any more; they are killed then.
  std::chrono::nanoseconds orphans = std::chrono::seconds(30);
};

/// Runs in the child, as the leader of a session of its own, with the signals of the parent
/// unblocked. The value comes out of Supervise; by then everything that it started has ended.
using Life = std::function<std::string(Kept& kept)>;

/// `kept` is what the first life finds. `signals` were blocked by this object before, in a process
/// without other threads. The value is what a life returned; Bug when too many died, with how the
/// last one did.
Result<std::string> Supervise(const SupervisorOptions& options, os::SignalFd& signals, KeptFds kept,
                              const Life& life);

}  // namespace muster::agent
