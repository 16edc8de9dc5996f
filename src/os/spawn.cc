// Spawn: everything is prepared before the clone, because between clone and exec the child of a
// program with threads may only make system calls.
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "os/clone.h"
#include "os/process.h"
#include "os/wait_fd.h"

namespace muster::os {
namespace {

/// What the child reports when it cannot become the program.
struct Failure {
  enum class Step : int { kDescriptors, kSession, kParent, kDirectory, kExec };
  Step step;
  int error;
};

/// All that the child needs, as plain memory.
struct ChildPlan {
  const char* program;
  char* const* arguments;
  char* const* environment;
  const char* directory;  // null: stay
  std::span<DescriptorMove> moves;
  int first_free;  // above every target
  int report;
  bool new_session;
  int parent_death_signal;
  pid_t parent;
};

[[noreturn]] void Give(int report, Failure::Step step) {
  const Failure failure{step, errno};
  [[maybe_unused]] const auto written = ::write(report, &failure, sizeof(failure));
  ::_exit(127);
}

/// Every descriptor closes at exec but the targets. Sources move out of the way first, so that a
/// target may be another's source.
int ArrangeDescriptors(ChildPlan& plan) {
  plan.report = ::fcntl(plan.report, F_DUPFD_CLOEXEC, plan.first_free);
  if (plan.report < 0) return -1;
  if (::close_range(0, ~0U, CLOSE_RANGE_CLOEXEC) < 0) return -1;
  for (DescriptorMove& move : plan.moves) {
    move.from = ::fcntl(move.from, F_DUPFD_CLOEXEC, plan.first_free);
    if (move.from < 0) return -1;
  }
  for (const DescriptorMove& move : plan.moves) {
    if (::dup2(move.from, move.to) < 0) return -1;
  }
  return 0;
}

[[noreturn]] void BecomeProgram(ChildPlan plan) {
  const int original_report = plan.report;
  if (ArrangeDescriptors(plan) < 0) {
    Give(plan.report < 0 ? original_report : plan.report, Failure::Step::kDescriptors);
  }
  if (plan.new_session && ::setsid() < 0) Give(plan.report, Failure::Step::kSession);
  if (plan.parent_death_signal != 0) {
    if (::prctl(PR_SET_PDEATHSIG, plan.parent_death_signal) < 0) {
      Give(plan.report, Failure::Step::kParent);
    }
    if (::getppid() != plan.parent)
      ::_exit(127);  // it died before the prctl: nobody is left to tell
  }
  if (plan.directory != nullptr && ::chdir(plan.directory) < 0) {
    Give(plan.report, Failure::Step::kDirectory);
  }
  ResetSignals();
  ::execve(plan.program, plan.arguments, plan.environment);
  Give(plan.report, Failure::Step::kExec);
}

Error ErrorOf(const Failure& failure, const SpawnOptions& options) {
  switch (failure.step) {
    case Failure::Step::kDescriptors:
      return ErrnoError("arrange the descriptors of " + options.program, failure.error);
    case Failure::Step::kSession:
      return ErrnoError("make a session for " + options.program, failure.error);
    case Failure::Step::kParent:
      return ErrnoError("tie " + options.program + " to its parent", failure.error);
    case Failure::Step::kDirectory:
      return ErrnoError("start in folder " + options.directory, failure.error);
    case Failure::Step::kExec:
      return ErrnoError("start " + options.program, failure.error);
  }
  return {Code::kBug, "a child reported an unknown step"};
}

/// A null-terminated array of pointers into `strings`, which must outlive it, as exec wants it.
std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Status CheckOptions(const SpawnOptions& options) {
  const auto has_nul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  if (options.program.empty() || has_nul(options.program) || has_nul(options.directory) ||
      std::any_of(options.arguments.begin(), options.arguments.end(), has_nul) ||
      std::any_of(options.environment.begin(), options.environment.end(), has_nul)) {
    return Error(Code::kInvalid, "a program, argument or variable is empty or holds a zero byte");
  }
  std::vector<int> targets;
  for (const DescriptorMove& move : options.descriptors) {
    if (move.from < 0 || move.to < 0 || std::count(targets.begin(), targets.end(), move.to) > 0) {
      return Error(Code::kInvalid,
                   "the descriptors of " + options.program + " contradict each other");
    }
    targets.push_back(move.to);
  }
  return Ok();
}

/// Standard descriptors that nobody named read and write nothing.
std::vector<DescriptorMove> WithStandardOnes(const SpawnOptions& options, int null) {
  std::vector<DescriptorMove> moves = options.descriptors;
  for (int standard = 0; standard <= 2; ++standard) {
    const bool named = std::any_of(moves.begin(), moves.end(),
                                   [&](const DescriptorMove& m) { return m.to == standard; });
    if (!named) moves.push_back({null, standard});
  }
  return moves;
}

/// The pid of the child, or −1 and errno.
pid_t CloneProgram(const ChildPlan& plan, int cgroup_fd, int* pidfd) {
  // No handler of ours may run in the child, which shares nothing with what it would act on.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid =
      Clone({.flags = CLONE_PIDFD, .pidfd = pidfd, .exit_signal = SIGCHLD, .cgroup_fd = cgroup_fd});
  if (pid == 0) BecomeProgram(plan);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

/// Waits until the exec succeeded, which closes the pipe, or until the child said why it failed.
Status AwaitExec(const SpawnOptions& options, const Fd& report, const Process& child) {
  Failure failure{};
  ssize_t n = 0;
  do {
    n = ::read(report.get(), &failure, sizeof(failure));
  } while (n < 0 && errno == EINTR);
  if (n == 0) return Ok();
  const Error error = n == sizeof(failure) ? ErrorOf(failure, options)
                                           : ErrnoError("start " + options.program, errno);
  // It is about to _exit; reap it, because the caller never learns of it.
  [[maybe_unused]] const auto reaped = child.Wait(std::chrono::seconds(10));
  return error;
}

}  // namespace

Result<Process> Spawn(const SpawnOptions& options) {
  MUSTER_TRY(CheckOptions(options));
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return ErrnoError("open /dev/null", errno);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) return ErrnoError("pipe", errno);
  const Fd report(ends[0]);
  Fd report_write(ends[1]);

  std::vector<DescriptorMove> moves = WithStandardOnes(options, null.get());
  int first_free = 3;
  for (const DescriptorMove& move : moves) first_free = std::max(first_free, move.to + 1);
  const std::vector<std::string> only_name{options.program};
  const auto arguments = Pointers(options.arguments.empty() ? only_name : options.arguments);
  const auto environment = Pointers(options.environment);
  const ChildPlan plan{.program = options.program.c_str(),
                       .arguments = arguments.data(),
                       .environment = environment.data(),
                       .directory = options.directory.empty() ? nullptr : options.directory.c_str(),
                       .moves = moves,
                       .first_free = first_free,
                       .report = report_write.get(),
                       .new_session = options.new_session,
                       .parent_death_signal = options.parent_death_signal,
                       .parent = ::getpid()};

  int pidfd = -1;
  const pid_t pid = CloneProgram(plan, options.cgroup_fd, &pidfd);
  if (pid < 0) return ErrnoError("start " + options.program + ": clone", errno);
  report_write.Reset();
  Process child(pid, Fd(pidfd));
  MUSTER_TRY(AwaitExec(options, report, child));
  return child;
}

}  // namespace muster::os
