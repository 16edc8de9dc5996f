#pragma once
// How a zygote makes a worker: a copy of the calling process whose parent is *our* parent, the
// shim. The shim learns of its end through the pidfd and reaps it with __WALL (PollPidfd), because
// its exit signal is 0; the zygote can die without its copies noticing.
//
// Only from a process with one thread, checked in /proc/self/task: a lock that another thread holds
// would stay locked in the copy for ever. glibc's fork does not know of this copy, so the kernel
// writes the new thread id where glibc keeps it and the robust list is registered anew; malloc,
// threads, raise and pthread functions work in the copy. atfork handlers do not run.

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace muster::os {

struct Copy {
  bool in_child = false;
  pid_t pid = 0;  ///< of the copy; in the copy itself 0
  Fd pidfd;       ///< of the copy, to be sent to the shim; invalid in the copy itself
};

struct CopyOptions {
  int cgroup_fd = -1;  ///< the copy is born inside this cgroup v2 folder
};

/// Returns twice, like fork. Precondition when this process has threads, or when the kernel cannot
/// tell where glibc keeps the thread id (no CONFIG_CHECKPOINT_RESTORE): start the program plainly
/// instead.
Result<Copy> CloneIntoParent(const CopyOptions& options = {});

}  // namespace muster::os
