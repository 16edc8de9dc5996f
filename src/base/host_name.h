#pragma once
// The name of this machine, by which a reader of a file knows whether the clock and the process
// numbers in it are those of its own machine. Any thread.

#include <string>

namespace muster {

/// "unknown" when the system does not tell.
std::string HostName();

}  // namespace muster
