#pragma once
// The threads of a process, stopped by ptrace for the moments that it takes to copy their registers
// and stacks (PTRACE_SEIZE and PTRACE_INTERRUPT, so no signal is sent and what a stopped process
// was before it is afterwards). Names are looked up from the copy, when the process runs again.
//
// A system call that a stop interrupts goes on by itself; the few that Linux never restarts
// (epoll_wait, sigtimedwait) return EINTR, as for any debugger. Whoever is in the kernel in state D
// does not stop: it is not waited for beyond the deadline, and runs on once this program ends.
//
// One thread: ptrace belongs to it. SIGCHLD is blocked by the caller (Take).

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace muster::agent::stacks {

/// A line of /proc/PID/maps.
struct Mapping {
  std::uint64_t begin = 0, end = 0, offset = 0;
  std::uint64_t inode = 0;
  bool executable = false;
  std::string path;
};

struct HeldThread {
  pid_t tid = 0;
  std::string name;
  std::string missing;  ///< why there are no registers
  struct ::user_regs_struct registers{};
  std::uint64_t stack_at = 0;
  std::string stack;  ///< what lies there
};

/// Of a process that runs again.
struct HeldProcess {
  pid_t pid = 0;
  std::string name;
  std::string state;
  std::string missing;
  std::vector<Mapping> maps;
  std::vector<HeldThread> threads;  ///< the main thread first
};

/// Bytes of another process; the value is shorter where they end.
std::string ReadMemory(pid_t pid, std::uint64_t address, std::size_t size);
std::optional<std::uint64_t> ReadWord(pid_t pid, std::uint64_t address);

std::vector<Mapping> MapsOf(pid_t pid);
std::uint64_t StackPointer(const HeldThread& thread);

class Hold {
 public:
  /// Stops every thread that can be stopped by then.
  Hold(pid_t pid, Instant deadline);
  /// Lets them go on.
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  /// Copies what is needed; `budget` is the memory that stacks may take and is reduced by it.
  HeldProcess Copy(std::size_t& budget) const;

 private:
  struct Tracee {
    pid_t tid = 0;
    bool stopped = false;
    int signal = 0;  ///< that it stopped on the way to: it gets it when it goes on
    std::string missing;
  };
  bool SeizeNew();
  void AwaitStops(Instant deadline);
  void Note(pid_t tid, int status);

  pid_t pid_;
  std::string state_;  ///< before it was held
  std::vector<Tracee> tracees_;
  std::string missing_;
};

}  // namespace muster::agent::stacks
