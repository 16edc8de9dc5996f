#include "os/clone.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace muster::os {
namespace {

/// clone(2), whose fourth and fifth arguments change places between architectures: one is the
/// child's thread id, the other is not read without CLONE_SETTLS.
pid_t LegacyClone(const CloneOptions& options) {
  const auto flags =
      static_cast<unsigned long>(options.flags) | static_cast<unsigned long>(options.exit_signal);
  return static_cast<pid_t>(
      ::syscall(SYS_clone, flags, nullptr, options.pidfd, options.child_tid, options.child_tid));
}

}  // namespace

pid_t Clone(const CloneOptions& options) {
  clone_args args{};
  args.flags = options.flags;
  args.pidfd = reinterpret_cast<std::uintptr_t>(options.pidfd);
  args.child_tid = reinterpret_cast<std::uintptr_t>(options.child_tid);
  args.exit_signal = static_cast<std::uint64_t>(options.exit_signal);
  if (options.cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(options.cgroup_fd);
  }
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof(args)));
  const bool hidden = pid < 0 && (errno == ENOSYS || errno == EPERM);
  return hidden && options.cgroup_fd < 0 ? LegacyClone(options) : pid;
}

void ResetSignals() {
  struct sigaction fresh{};
  fresh.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &fresh, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace muster::os
