#pragma once
// Starting a program and learning how it ended, without a race on its pid: the child comes with a
// pidfd, made by clone3 in the same step, and every signal and wait goes through it.
//
// The child has exactly the environment, folder and descriptors that SpawnOptions names: all others
// are closed (close_range), unnamed standard ones are /dev/null, every signal is at its default and
// unblocked. An exec that fails is an Error of Spawn, not a child that exits with 127.
//
// Spawn works from a program with threads. A Process is a handle: its destructor neither kills nor
// reaps. Any thread, one at a time.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace muster::os {

/// How a process ended.
struct Exit {
  int code = 0;         ///< what it gave to exit(3), when `signal` is 0
  int signal = 0;       ///< what killed it, or 0
  bool dumped = false;  ///< a core was written
  bool operator==(const Exit&) const = default;
  bool ok() const { return code == 0 && signal == 0; }
};
/// "exit code 3", "killed by SIGSEGV (core dumped)".
std::string Describe(const Exit& exit);

/// Puts our descriptor `from` at `to` in the child.
struct DescriptorMove {
  int from = -1;
  int to = -1;
};

struct SpawnOptions {
  std::string program;                      ///< a path, used as it is; FindProgram searches PATH
  std::vector<std::string> arguments;       ///< argv, its first included; empty: {program}
  std::vector<std::string> environment;     ///< all of it, "NAME=value"
  std::string directory;                    ///< empty: ours
  std::vector<DescriptorMove> descriptors;  ///< each `to` once
  int cgroup_fd = -1;                       ///< born inside this cgroup v2 folder
  bool new_session = false;                 ///< setsid: a terminal's Ctrl-C does not reach it
  int parent_death_signal = 0;  ///< sent when the *thread* that called Spawn ends; 0: none
};

class Process {
 public:
  Process(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  ///< readable once it ended

  /// NotFound when it was reaped already.
  Status Send(int signal) const;
  /// Reaps it if it ended; nothing while it runs.
  Result<std::optional<Exit>> Poll() const;
  /// Waits and reaps; nothing when `timeout` ran out first.
  Result<std::optional<Exit>> Wait(std::chrono::nanoseconds timeout) const;

 private:
  pid_t pid_;
  Fd pidfd_;
};

Result<Process> Spawn(const SpawnOptions& options);

/// Process::Poll and Process::Send for who holds a bare pidfd. Poll needs the process to be our
/// child; it takes children of every kind (__WALL), those of CloneIntoParent too.
Result<std::optional<Exit>> PollPidfd(int pidfd);
Status SendToPidfd(int pidfd, int signal);

/// Called in a child: `signal` when the thread that is its parent ends. Precondition when the
/// parent is no longer `expected_parent`, that is when it died before the call.
Status DieWithParent(int signal, pid_t expected_parent);

/// Where `name` is: itself when it holds a slash, otherwise the first executable file of that name
/// in the folders of `path` (the value of PATH). NotFound, Denied.
Result<std::string> FindProgram(const std::string& name, const std::string& path);

}  // namespace muster::os
