#include "agent/launch/sweep.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "agent/shim/descendants.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/file_system.h"

namespace muster::agent {
namespace {

void KillCgroup(const std::string& cgroup) {
  const Fd fd(::open((cgroup + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  [[maybe_unused]] const auto n = ::write(fd.get(), "1", 1);
}

/// The leaves, then the folder itself.
bool RemoveCgroup(const std::string& cgroup) {
  const auto names = PosixFiles().List(cgroup);
  if (!names) return names.error().code() == Code::kNotFound;
  for (const std::string& name : *names) ::rmdir((cgroup + "/" + name).c_str());
  return ::rmdir(cgroup.c_str()) == 0;
}

}  // namespace

void SweepAfterShim(const std::string& cgroup) {
  const Instant deadline = MonotonicClock::now() + std::chrono::seconds(5);
  do {
    if (!cgroup.empty()) KillCgroup(cgroup);
    const auto children = shim::KillChildren(0);
    while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
    }
    const bool removed = cgroup.empty() || RemoveCgroup(cgroup);
    if (children == 0 && removed) return;
    // Death takes a moment and has no descriptor here.
    ::poll(nullptr, 0, 1);
  } while (MonotonicClock::now() < deadline);
}

}  // namespace muster::agent
