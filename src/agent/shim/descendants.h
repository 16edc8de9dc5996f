#pragma once
// The processes below the shim that it did not start itself: children of workers that lost their
// parent come to the shim, because it is a subreaper. Libc only, no malloc.

#include <sys/types.h>

#include <cstdint>

namespace muster::agent::shim {

/// Sends SIGKILL to every direct child of this process but `spare` (0: none); returns how many
/// there were, those included that may not be killed (another user's, by a setuid program).
/// Repeated until it returns 0 it ends every descendant: a killed parent hands its children up.
std::uint32_t KillChildren(pid_t spare);

/// True when the process has a handler of its own for the signal (SigCgt of /proc/PID/status).
bool CatchesSignal(pid_t pid, int signal);

}  // namespace muster::agent::shim
