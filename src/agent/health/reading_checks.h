#pragma once
// The checks that only read: limits, clock, kernel settings, GPUs. Pure functions of a Sight.

#include "agent/health/check.h"
#include "agent/health/sight.h"

namespace muster::agent::health {

/// Set, and kept right: logs of several hosts are merged by it, certificates compared with it.
Check CheckClock(const Sight& sight);
Check CheckFiles(const Sight& sight);         ///< RLIMIT_NOFILE: pipes, pages and sockets of ranks
Check CheckProcesses(const Sight& sight);     ///< RLIMIT_NPROC
Check CheckLockedMemory(const Sight& sight);  ///< RLIMIT_MEMLOCK: RDMA registers memory
/// RLIMIT_CORE and where the kernel puts cores.
Check CheckCores(const Sight& sight);
/// Processes that our cgroup, or the kernel, still allows.
Check CheckPids(const Sight& sight);
/// Whether stacks of a worker can be taken by another process of ours (Yama).
Check CheckPtrace(const Sight& sight);
Check CheckMemory(const Sight& sight);  ///< MemAvailable
/// NVIDIA devices on the bus, in /dev, and the driver.
Check CheckGpus(const Sight& sight);

}  // namespace muster::agent::health
