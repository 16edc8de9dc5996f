#include "agent/keep/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <deque>
#include <utility>

#include "agent/launch/sweep.h"
#include "os/fd_packet.h"
#include "os/process.h"
#include "os/wait_fd.h"

namespace muster::agent {
namespace {

constexpr std::size_t kMostName = 64;
constexpr auto kOrphanLook = std::chrono::milliseconds(5);

class Supervisor {
 public:
  Supervisor(const SupervisorOptions& options, os::SignalFd& signals, KeptFds kept,
             const Life& life, SavedState state, SavedState result)
      : options_(options),
        signals_(signals),
        life_(life),
        state_(std::move(state)),
        result_(std::move(result)),
        kept_(std::move(kept)),
        family_{.supervisor = ::getpid()} {
    for (const Child& child : ChildrenOf(::getpid())) family_.strangers.push_back(child.pid);
  }

  Result<std::string> Run() {
    for (;;) {
      if (const Status begun = Begin(); !begun) return begun.error();
      Watch();
      if (const auto result = TakeResult()) {
        const auto group = kept_.find(kCgroupName);
        const std::string cgroup = group == kept_.end() ? "" : FolderOf(group->second[0]);
        kept_.clear();
        static_cast<void>(SweepAfterShim(cgroup));
        return *result;
      }
      past_.state = state_.Load();
      if (TooManyDied() || state_.closed()) return GiveUp();
    }
  }

 private:
  Status Begin() {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) < 0) {
      return ErrnoError("socketpair", errno);
    }
    Fd ours(pair[0]);
    Fd theirs(pair[1]);
    child_ = ::fork();
    if (child_ < 0) return NotStarted(errno);
    if (child_ == 0) {
      ours.Reset();
      Live(std::move(theirs));
    }
    socket_ = std::move(ours);
    pidfd_.Reset(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
    return Ok();
  }

  Error NotStarted(int error) {
    if (past_.count > 0) static_cast<void>(GiveUp());  // nobody follows: what is there must end
    return ErrnoError("start a process", error);
  }

  [[noreturn]] void Live(Fd socket) {
    ::setsid();
    // Who writes to a terminal from another session is not to be stopped for that.
    std::signal(SIGTTOU, SIG_IGN);
    Kept kept(std::move(socket), std::move(kept_), &state_, std::move(past_), family_);
    // Not empty, and in memory: it gets there even when the supervisor is stopped.
    result_.Save("=" + life_(kept));
    std::fflush(nullptr);
    ::_exit(0);
  }

  /// Until the child has ended; what it kept is here then.
  void Watch() {
    for (;;) {
      std::array<pollfd, 3> polled{
          {{signals_.fd(), POLLIN, 0}, {socket_.get(), POLLIN, 0}, {pidfd_.get(), POLLIN, 0}}};
      if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) continue;
      PassSignalsOn();
      Receive();
      if (ReapAll()) break;
    }
    Receive();
  }

  void PassSignalsOn() {
    for (;;) {
      const auto signal = signals_.Read();
      if (!signal || !*signal) return;
      ::kill(child_, (*signal)->number);
    }
  }

  void Receive() {
    for (;;) {
      std::array<char, kMostName> name{};
      os::InPacket packet{.bytes = name.data(), .room = name.size()};
      if (os::ReceivePacket(socket_.get(), &packet, MSG_DONTWAIT) != os::Received::kPacket) return;
      std::vector<Fd> fds;
      for (std::uint32_t i = 0; i < packet.fd_count; ++i) fds.emplace_back(packet.fds[i]);
      const std::string key(name.data(), packet.size);
      if (fds.empty()) {
        kept_.erase(key);
      } else {
        kept_[key] = std::move(fds);
      }
    }
  }

  /// Of orphans nobody asks how they ended. True when the child is among them.
  bool ReapAll() {
    bool ended = false;
    int status = 0;
    for (;;) {
      const pid_t pid = ::waitpid(-1, &status, WNOHANG | __WALL);
      if (pid <= 0) return ended;
      if (pid != child_) continue;
      ended = true;
      past_.died = MonotonicClock::now();
      past_.death = os::Describe({.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                                  .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                                  .dumped = WIFSIGNALED(status) && WCOREDUMP(status)});
      ++past_.count;
      deaths_.push_back(past_.died);
    }
  }

  std::optional<std::string> TakeResult() {
    const auto result = result_.Load();
    return result ? std::optional(result->substr(1)) : std::nullopt;
  }

  bool TooManyDied() {
    while (!deaths_.empty() && past_.died - deaths_.front() > options_.period) deaths_.pop_front();
    return deaths_.size() >= options_.lives;
  }

  /// Without its sockets the shim ends the job by itself.
  Error GiveUp() {
    kept_.clear();
    const Instant deadline = MonotonicClock::now() + options_.orphans;
    while (MonotonicClock::now() < deadline) {
      ReapAll();
      if (::waitpid(-1, nullptr, WNOHANG | __WALL) < 0 && errno == ECHILD) break;
      ::poll(nullptr, 0, static_cast<int>(kOrphanLook.count()));
    }
    static_cast<void>(SweepAfterShim(""));
    return {Code::kBug,
            fmt::format("the process that steers the run died {} times, at last: {}", past_.count,
                        past_.death),
            "its workers were stopped"};
  }

  const SupervisorOptions& options_;
  os::SignalFd& signals_;
  const Life& life_;
  SavedState state_;
  SavedState result_;
  KeptFds kept_;
  Family family_;
  PastLife past_;
  std::deque<Instant> deaths_;  ///< lately
  pid_t child_ = 0;
  Fd pidfd_;
  Fd socket_;
};

}  // namespace

Result<std::string> Supervise(const SupervisorOptions& options, os::SignalFd& signals, KeptFds kept,
                              const Life& life) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  SavedState state = MUSTER_TRY(SavedState::Create());
  SavedState result = MUSTER_TRY(SavedState::Create());
  return Supervisor(options, signals, std::move(kept), life, std::move(state), std::move(result))
      .Run();
}

}  // namespace muster::agent
