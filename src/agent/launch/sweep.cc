#include "agent/launch/sweep.h"

#include <poll.h>
#include <sys/wait.h>

#include <chrono>

#include "agent/shim/descendants.h"
#include "agent/shim/job_cgroup.h"
#include "base/clock.h"

namespace muster::agent {

bool SweepAfterShim(const std::string& cgroup) {
  const Instant deadline = MonotonicClock::now() + std::chrono::seconds(5);
  do {
    if (!cgroup.empty()) shim::KillCgroup(cgroup.c_str());
    const auto children = shim::KillChildren({});
    while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
    }
    const bool removed = cgroup.empty() || shim::RemoveCgroup(cgroup.c_str());
    if (children == 0 && removed) return true;
    // Death takes a moment and has no descriptor here.
    ::poll(nullptr, 0, 1);
  } while (MonotonicClock::now() < deadline);
  return false;
}

}  // namespace muster::agent
