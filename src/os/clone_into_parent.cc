#include "os/clone_into_parent.h"

#include <fmt/format.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/file_system.h"
#include "os/clone.h"

namespace muster::os {
namespace {

struct RobustList {
  void* head = nullptr;
  std::size_t size = 0;
};

RobustList ReadRobustList() {
  RobustList list;
  if (::syscall(SYS_get_robust_list, 0, &list.head, &list.size) < 0) return {};
  return list;
}

}  // namespace

Result<Copy> CloneIntoParent(const CopyOptions& options) {
  const std::size_t threads = MUSTER_TRY(PosixFiles().List("/proc/self/task")).size();
  if (threads != 1) {
    return Error(Code::kPrecondition,
                 fmt::format("a process with {} threads cannot be copied", threads),
                 "start the program plainly, or keep the zygote to one thread");
  }
  void* thread_id = nullptr;
  if (::prctl(PR_GET_TID_ADDRESS, &thread_id) < 0 || thread_id == nullptr) {
    return Error(Code::kPrecondition, "the kernel does not tell where the thread id is kept",
                 "start the program plainly; forking needs CONFIG_CHECKPOINT_RESTORE");
  }
  const RobustList robust = ReadRobustList();
  int pidfd = -1;
  const pid_t pid =
      Clone({.flags = CLONE_PARENT | CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
             .pidfd = &pidfd,
             .child_tid = thread_id,
             .exit_signal = 0,
             .cgroup_fd = options.cgroup_fd});
  if (pid < 0) return ErrnoError("copy the process: clone", errno);
  if (pid > 0) return Copy{.in_child = false, .pid = pid, .pidfd = Fd(pidfd)};
  // The kernel forgets the list in a copy; robust mutexes would not be released at its death.
  if (robust.head != nullptr) ::syscall(SYS_set_robust_list, robust.head, robust.size);
  return Copy{.in_child = true};
}

}  // namespace muster::os
