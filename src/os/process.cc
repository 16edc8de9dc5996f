#include "os/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "os/signals.h"
#include "os/wait_fd.h"

namespace muster::os {
namespace {

Exit ExitOf(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return Exit{.code = info.si_status};
  return Exit{.signal = info.si_status, .dumped = info.si_code == CLD_DUMPED};
}

Status CheckExecutable(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) < 0) return ErrnoError("program " + path, errno);
  if (!S_ISREG(info.st_mode)) return Error(Code::kInvalid, "program " + path + " is not a file");
  if (::access(path.c_str(), X_OK) < 0) {
    return ErrnoError("program " + path, errno).Hint("make it executable: chmod +x " + path);
  }
  return Ok();
}

}  // namespace

std::string Describe(const Exit& exit) {
  if (exit.signal == 0) return fmt::format("exit code {}", exit.code);
  return fmt::format("killed by {}{}", SignalName(exit.signal),
                     exit.dumped ? " (core dumped)" : "");
}

Status SendToPidfd(int pidfd, int signal) {
  // glibc 2.36 declares its wrapper without extern "C".
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) < 0) {
    return ErrnoError("send " + SignalName(signal), errno);
  }
  return Ok();
}

Result<std::optional<Exit>> PollPidfd(int pidfd) {
  siginfo_t info{};
  const auto id = static_cast<id_t>(pidfd);
  while (::waitid(P_PIDFD, id, &info, WEXITED | WNOHANG | __WALL) < 0) {
    if (errno != EINTR) return ErrnoError("wait for a process", errno);
  }
  if (info.si_pid == 0) return std::optional<Exit>();
  return std::optional(ExitOf(info));
}

Status Process::Send(int signal) const {
  return Within(fmt::format("process {}", pid_), SendToPidfd(pidfd_.get(), signal));
}

Result<std::optional<Exit>> Process::Poll() const { return PollPidfd(pidfd_.get()); }

Result<std::optional<Exit>> Process::Wait(std::chrono::nanoseconds timeout) const {
  MUSTER_TRY(WaitFd(pidfd_.get(), POLLIN, timeout));
  return Poll();
}

Status DieWithParent(int signal, pid_t expected_parent) {
  if (::prctl(PR_SET_PDEATHSIG, signal) < 0) return ErrnoError("ask for a death signal", errno);
  // Had the parent died before the prctl, no signal would ever come.
  if (::getppid() != expected_parent) {
    return Error(Code::kPrecondition, fmt::format("the parent {} is gone", expected_parent));
  }
  return Ok();
}

Result<std::string> FindProgram(const std::string& name, const std::string& path) {
  if (name.empty()) return Error(Code::kInvalid, "the name of the program is empty");
  if (name.find('/') != std::string::npos) {
    MUSTER_TRY(CheckExecutable(name));
    return name;
  }
  std::optional<Error> denied;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = end == begin ? "." : path.substr(begin, end - begin);
    std::string candidate = folder + "/" + name;
    const Status usable = CheckExecutable(candidate);
    if (usable) return candidate;
    if (usable.error().code() == Code::kDenied) denied = usable.error();
    begin = end + 1;
  }
  if (denied) return *denied;
  return Error(Code::kNotFound, fmt::format("no program '{}' in PATH", name),
               "check the spelling, or give its path");
}

}  // namespace muster::os
