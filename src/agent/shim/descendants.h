#pragma once
// The processes below the shim that it did not start itself: children of workers that lost their
// parent come to the shim, because it is a subreaper. Libc only, no malloc.

#include <sys/types.h>

#include <cstdint>

namespace muster::agent::shim {

/// Children that live on; 0: none.
struct Spared {
  pid_t zygote = 0;
  pid_t helper = 0;
};

/// Sends SIGKILL to every direct child of this process but those; returns how many
/// there were, those included that may not be killed (another user's, by a setuid program).
/// Repeated until it returns 0 it ends every descendant: a killed parent hands its children up.
std::uint32_t KillChildren(Spared spared);

/// True when the process has a handler of its own for the signal (SigCgt of /proc/PID/status).
bool CatchesSignal(pid_t pid, int signal);

}  // namespace muster::agent::shim
