#pragma once
// The bare clone3(2), for which glibc has no wrapper. Without CLONE_VM it returns twice, like fork.
// Nothing of glibc's own fork happens: no atfork handlers, no lock is reset. Internal to src/os.

#include <linux/sched.h>
#include <sys/types.h>

#include <cstdint>

namespace muster::os {

struct Clone3Options {
  std::uint64_t flags = 0;
  int* pidfd = nullptr;       ///< for CLONE_PIDFD
  void* child_tid = nullptr;  ///< for CLONE_CHILD_SETTID and CLEARTID
  int exit_signal = 0;
  int cgroup_fd = -1;  ///< ≥ 0: adds CLONE_INTO_CGROUP
};

/// 0 in the child, its pid in the parent, −1 and errno.
pid_t Clone3(const Clone3Options& options);

}  // namespace muster::os
