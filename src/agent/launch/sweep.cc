#include "agent/launch/sweep.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string_view>

#include "agent/shim/job_cgroup.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/file_system.h"
#include "os/process.h"

namespace muster::agent {
namespace {

constexpr Bytes kMostEnvironment{8 << 20};

struct Stat {
  int parent = 0;
  bool dead = false;
};

/// `fields`: of /proc/PID/stat from the third, the state, on.
int ThreadsOf(std::string_view fields) {
  constexpr int kThreads = 20;
  for (int field = 3; field < kThreads; ++field) {
    const auto space = fields.find(' ');
    if (space == std::string_view::npos) return 0;
    fields.remove_prefix(space + 1);
  }
  int threads = 0;
  std::from_chars(fields.data(), fields.data() + fields.size(), threads);
  return threads;
}

/// /proc/PID/stat; nothing of a process that is gone.
std::optional<Stat> StatOf(const std::string& pid) {
  const Fd fd(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> text{};
  const ssize_t size = fd.valid() ? ::read(fd.get(), text.data(), text.size()) : -1;
  if (size <= 0) return std::nullopt;
  const std::string_view stat(text.data(), static_cast<std::size_t>(size));
  // The name may hold anything, so the last parenthesis ends it: ") S 1234 …".
  const auto name = stat.rfind(')');
  if (name == std::string_view::npos || name + 4 >= stat.size()) return std::nullopt;
  Stat found;
  std::from_chars(stat.data() + name + 4, stat.data() + stat.size(), found.parent);
  // The first thread is a zombie already while others still leave the kernel.
  const bool ended = stat[name + 2] == 'Z' || stat[name + 2] == 'X';
  found.dead = ended && ThreadsOf(stat.substr(name + 2)) <= 1;
  return found;
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
  const auto stat = StatOf(std::to_string(pid));
  if (held.valid() && stat && stat->parent == parent) {
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
    const auto stat = StatOf(name);
    if (stat && stat->parent == parent) children.push_back({pid, stat->dead});
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
