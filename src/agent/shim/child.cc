#include "agent/shim/child.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "agent/shim/protocol.h"
#include "os/clone.h"

namespace muster::agent::shim {
namespace {

constexpr int kMaxFds = 32;

/// Puts fds[i] at i. They are first moved out of the way, because a source may sit where a target
/// goes.
int PlaceFds(const int* fds, std::uint32_t count) {
  int moved[kMaxFds];
  if (count > kMaxFds) return EINVAL;
  for (std::uint32_t i = 0; i < count; ++i) {
    moved[i] = ::fcntl(fds[i], F_DUPFD_CLOEXEC, static_cast<int>(count));
    if (moved[i] < 0) return errno;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (::dup2(moved[i], static_cast<int>(i)) < 0) return errno;
  }
  return ::close_range(count, ~0U, 0) < 0 ? errno : 0;
}

}  // namespace

int ErrorPage::Make() {
  fd = ::memfd_create("muster-errors", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, kMaxWorkers * sizeof(std::int32_t)) < 0) return errno;
  Map(fd);
  return errors == nullptr ? errno : 0;
}

void ErrorPage::Map(int shared) {
  void* page = ::mmap(nullptr, kMaxWorkers * sizeof(std::int32_t), PROT_READ | PROT_WRITE,
                      MAP_SHARED, shared, 0);
  errors = page == MAP_FAILED ? nullptr : static_cast<std::int32_t*>(page);
}

void ErrorPage::Unmap() {
  if (errors != nullptr) ::munmap(errors, kMaxWorkers * sizeof(std::int32_t));
  errors = nullptr;
}

int BecomeWorker(const ChildPlan& plan, const Command& command) {
  if (::setsid() < 0 && errno != EPERM) return errno;
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) return errno;
  if (::getppid() != plan.parent) return ESRCH;
  // Under Yama nobody but an ancestor may look at its stacks; what the shim starts for that is
  // none. Fails where there is no Yama.
  ::prctl(PR_SET_PTRACER, plan.parent, 0, 0, 0);
  os::ResetSignals();
  ::umask(static_cast<mode_t>(plan.umask));
  if (command.folder[0] != '\0' && ::chdir(command.folder) < 0) return errno;
  if (const int error = PlaceFds(plan.fds, plan.fd_count); error != 0) return error;
  if (plan.nofile != nullptr && ::setrlimit(RLIMIT_NOFILE, plan.nofile) < 0) return errno;
  return 0;
}

}  // namespace muster::agent::shim
