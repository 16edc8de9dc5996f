#include "agent/launch/sweep.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <optional>

#include "agent/shim/job_cgroup.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/file_system.h"
#include "os/process.h"
#include "os/process_sight.h"

namespace muster::agent {
namespace {

constexpr Bytes kMostEnvironment{8 << 20};

/// Nothing of a process that is gone.
std::optional<os::ProcessSight> SightOf(int pid) {
  const auto watch = os::ProcessWatch::Open(pid);
  const auto sight = watch ? watch->See() : Result<os::ProcessSight>(watch.error());
  return sight ? std::optional(*sight) : std::nullopt;
}

bool IsMarked(int pid, const std::string& mark) {
  if (mark.empty()) return false;
  const auto environment =
      PosixFiles().ReadAll(fmt::format("/proc/{}/environ", pid), kMostEnvironment);
  return environment && ('\0' + *environment).find('\0' + mark + '\0') != std::string::npos;
}

/// Somebody else reaps it: only who is that child still when it is held is killed.
void KillHeld(int pid, int parent) {
  const Fd held(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto sight = SightOf(pid);
  if (held.valid() && sight && sight->parent == parent) {
    static_cast<void>(os::SendToPidfd(held.get(), SIGKILL));
  }
}

/// One round. True when it met somebody.
bool KillChildren(int parent, const Orphanage& orphanage) {
  const bool ours = parent == ::getpid();
  bool met = false;
  for (const Child& child : ChildrenOf(parent)) {
    const bool strange =
        std::ranges::find(orphanage.strangers, child.pid) != orphanage.strangers.end();
    if (child.pid == ::getpid() || strange) continue;
    // What it had started is ours by now, and may have been passed over in this round.
    if (ours && child.dead) met = ::waitpid(child.pid, nullptr, WNOHANG | __WALL) > 0 || met;
    if (child.dead || IsMarked(child.pid, orphanage.mark)) continue;
    met = true;
    ours ? static_cast<void>(::kill(child.pid, SIGKILL)) : KillHeld(child.pid, parent);
  }
  return met;
}

}  // namespace

std::vector<Child> ChildrenOf(int parent) {
  std::vector<Child> children;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry("/proc", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename();
    int pid = 0;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || rest != name.data() + name.size()) continue;
    const auto sight = SightOf(pid);
    if (!sight || sight->parent != parent) continue;
    children.push_back({pid, sight->state == os::ProcessState::kDead && sight->threads <= 1});
  }
  return children;
}

bool SweepAfterShim(const std::string& cgroup, const Orphanage& orphanage) {
  const Instant deadline = MonotonicClock::now() + std::chrono::seconds(5);
  do {
    if (!cgroup.empty()) shim::KillCgroup(cgroup.c_str());
    bool met = KillChildren(::getpid(), orphanage);
    // Once it is gone its number is anybody's.
    if (orphanage.supervisor != 0 && ::getppid() == orphanage.supervisor) {
      met = KillChildren(orphanage.supervisor, orphanage) || met;
    }
    const bool removed = cgroup.empty() || shim::RemoveCgroup(cgroup.c_str());
    if (!met && removed) return true;
    // Death takes a moment and has no descriptor here.
    ::poll(nullptr, 0, 1);
  } while (MonotonicClock::now() < deadline);
  return false;
}

}  // namespace muster::agent
