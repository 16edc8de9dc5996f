#include "os/clone3.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace muster::os {

pid_t Clone3(const Clone3Options& options) {
  clone_args args{};
  args.flags = options.flags;
  args.pidfd = reinterpret_cast<std::uintptr_t>(options.pidfd);
  args.child_tid = reinterpret_cast<std::uintptr_t>(options.child_tid);
  args.exit_signal = static_cast<std::uint64_t>(options.exit_signal);
  if (options.cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(options.cgroup_fd);
  }
  return static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof(args)));
}

}  // namespace muster::os
