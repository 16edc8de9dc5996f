#pragma once
// The bare clone3(2), for which glibc has no wrapper; without CLONE_VM it returns twice, like fork.
// Container engines hide clone3 from programs (seccomp says ENOSYS, older ones EPERM): the older
// clone(2) is used there, which can do all of this but start in a cgroup. Nothing of glibc's own
// fork happens: no atfork handlers, no lock is reset. Libc only, no malloc: the shim links it.

#include <linux/sched.h>
#include <sys/types.h>

#include <cstdint>

namespace muster::os {

struct CloneOptions {
  std::uint32_t flags = 0;    ///< CLONE_…, without CLONE_VM and without an exit signal
  int* pidfd = nullptr;       ///< for CLONE_PIDFD
  void* child_tid = nullptr;  ///< for CLONE_CHILD_SETTID and CLEARTID
  int exit_signal = 0;
  int cgroup_fd = -1;  ///< ≥ 0: adds CLONE_INTO_CGROUP; then nothing stands in for clone3
};

/// For a child that becomes another program: every signal at its default and none blocked. Ignored
/// ones would stay ignored across exec.
void ResetSignals();

/// 0 in the child, its pid in the parent, −1 and errno.
pid_t Clone(const CloneOptions& options);

}  // namespace muster::os
