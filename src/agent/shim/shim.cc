#include "agent/shim/shim.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

namespace muster::agent::shim {
namespace {

// Reaping of strays hangs on SIGCHLD; a round of killing is repeated this often beside it.
constexpr int kKillRoundMs = 5;
constexpr int kIdleMs = 60'000;
constexpr int kRetryMs = 5;
constexpr int kForkingMs = 100;

}  // namespace

/// What poll said, by where it came from.
struct Shim::Ready {
  short control = 0;
  short signals = 0;
  short zygote_socket = 0;
  short zygote = 0;
  short cgroup = 0;
  short workers[kMaxWorkers] = {};
};

std::int64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int PidfdSignal(int pidfd, int signal) {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

bool Shim::SetUp(const ShimOptions& options) {
  control_ = options.control_fd;
  orphan_grace_ns_ = options.orphan_grace_ns;
  ::fcntl(control_, F_SETFD, FD_CLOEXEC);
  // A session of our own: the terminal's Ctrl-C goes to the controller, which decides what it
  // means.
  ::setsid();
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) return false;
  // Who was stopped could not see its controller die, and the job would stay.
  if (::prctl(PR_SET_PDEATHSIG, SIGCONT) < 0) return false;
  ::prctl(PR_SET_NAME, "muster-shim");
  sigset_t mask;
  ::sigfillset(&mask);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::sigemptyset(&mask);
  constexpr int kWatched[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  for (const int signal : kWatched) ::sigaddset(&mask, signal);
  signals_ = ::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) return false;
  // Workers get the limit that the user has; we hold three descriptors for each of them.
  ::getrlimit(RLIMIT_NOFILE, &nofile_);
  const struct rlimit raised{nofile_.rlim_max, nofile_.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  if (options.soft_nofile != 0 && options.soft_nofile < nofile_.rlim_max) {
    nofile_.rlim_cur = options.soft_nofile;
  }
  if (errors_.Make() != 0) return false;
  if (cgroup_.Make(options.id)) ProbeCgroup();
  return true;
}

int Shim::Run(const ShimOptions& options) {
  if (!SetUp(options)) return 1;
  for (;;) {
    SendForks();
    WatchZygote();
    Report();
    ContinueEnding();
    if (leaving_ && ending_ == Ending::kNo) break;
    Report();
    Poll();
  }
  Report();
  cgroup_.Remove();
  return 0;
}

int Shim::PollTimeoutMs() const {
  if (ending_ == Ending::kKill) return kKillRoundMs;
  // Descriptors in flight are limited by user: somebody else's may be in the way.
  if (AnyInState(Worker::State::kQueued) && !AnyInState(Worker::State::kForking)) return kRetryMs;
  if (ending_ != Ending::kTerm) return AnyInState(Worker::State::kForking) ? kForkingMs : kIdleMs;
  const std::int64_t left_ns = deadline_ns_ - NowNs();
  return left_ns <= 0 ? 0 : static_cast<int>(left_ns / 1'000'000 + 1);
}

void Shim::Poll() {
  static pollfd polled[kMaxWorkers + 5];
  static short* targets[kMaxWorkers + 5];
  static Ready ready;
  ready = Ready{};
  std::uint32_t count = 0;
  // Only what is open: poll refuses more entries than RLIMIT_NOFILE allows descriptors.
  const auto add = [&](int fd, short events, short* target) {
    if (fd < 0) return;
    polled[count] = {fd, events, 0};
    targets[count++] = target;
  };
  add(control_, static_cast<short>(blocked_ ? POLLIN | POLLOUT : POLLIN), &ready.control);
  add(signals_, POLLIN, &ready.signals);
  add(zygote_socket_, POLLIN, &ready.zygote_socket);
  add(zygote_pidfd_, POLLIN, &ready.zygote);
  add(ending_ == Ending::kKill ? cgroup_.events_fd : -1, POLLPRI, &ready.cgroup);
  for (std::uint32_t i = 0; i < kMaxWorkers; ++i) add(workers_[i].pidfd, POLLIN, &ready.workers[i]);
  const int found = ::poll(polled, count, PollTimeoutMs());
  if (found == 0 || (found < 0 && errno == EINTR)) return;
  // Out of memory, or a limit that was lowered under us: look at everything, but not all the time.
  if (found < 0) ::usleep(kRetryMs * 1000);
  for (std::uint32_t i = 0; i < count; ++i) {
    *targets[i] = found < 0 ? static_cast<short>(POLLIN | POLLOUT) : polled[i].revents;
  }
  Dispatch(ready);
}

void Shim::Dispatch(const Ready& ready) {
  if (ready.control & POLLOUT) blocked_ = false;
  if (ready.signals != 0) DrainSignals();
  // The reply that a worker was forked comes before its death is looked at.
  if (ready.zygote_socket != 0) ReceiveZygote();
  if (ready.zygote != 0) ReapZygote();
  for (std::uint32_t i = 0; i < kMaxWorkers; ++i) {
    if (ready.workers[i] != 0) ReapWorker(&workers_[i]);
  }
  ReapStrays();
  if (ready.control & (POLLIN | POLLHUP | POLLERR)) ReceiveControl();
}

void Shim::DrainSignals() {
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof(info)) == sizeof(info)) {
    // Somebody ends the shim itself: that means the job.
    if (info.ssi_signo != SIGCHLD) ControllerGone();
  }
}

void Shim::ReceiveControl() {
  for (;;) {
    switch (ReceivePacket(control_, &packet_)) {
      case Receive::kPacket:
        HandleControl(&packet_);
        packet_.CloseFds();
        break;
      case Receive::kNothing:
        return;
      case Receive::kMalformed:
        break;
      case Receive::kClosed:
        ::close(control_);
        control_ = -1;
        ControllerGone();
        return;
    }
  }
}

void Shim::HandleControl(Packet* packet) {
  const Type type = packet->type();
  if (type == Type::kStartZygote) {
    StartZygote(packet);
  } else if (type == Type::kSpawn) {
    StartWorker(packet);
  } else if (type == Type::kSignal && packet->As<Signal>() != nullptr) {
    SignalWorkers(*packet->As<Signal>());
  } else if (type == Type::kStop && packet->As<Stop>() != nullptr) {
    TakeStop(*packet->As<Stop>());
  } else if (type == Type::kHelp) {
    StartHelper(*packet);
  } else if (type == Type::kGoodbye) {
    leaving_ = true;
    BeginStop(SIGKILL, 0);
  } else if (type == Type::kResync && packet->As<Resync>() != nullptr) {
    resync_ = packet->As<Resync>()->request;
    TellAgain();
  }
}

/// A second one for what is stopped already must not stand in the way of who is started next.
void Shim::TakeStop(const Stop& stop) {
  if (stop.generation != 0 && stop.generation <= stopped_.generation) {
    report_stopped_ = true;
    return;
  }
  if (stop.generation > stop_generation_) stop_generation_ = stop.generation;
  constexpr std::uint64_t kMaxGraceNs = 3600ull * 1'000'000'000;
  BeginStop(stop.signal,
            static_cast<std::int64_t>(stop.grace_ns < kMaxGraceNs ? stop.grace_ns : kMaxGraceNs));
}

void Shim::TellAgain() {
  report_hello_ = report_synced_ = true;
  report_zygote_ = zygote_ != 0;
  for (Worker& worker : workers_) {
    if (worker.state == Worker::State::kRunning) worker.report_start = true;
    if (worker.state == Worker::State::kTold) {
      worker.state = Worker::State::kDead;
      worker.report_exit = true;
    }
  }
}

void Shim::ReceiveZygote() {
  for (;;) {
    switch (ReceivePacket(zygote_socket_, &packet_)) {
      case Receive::kPacket:
        if (packet_.type() == Type::kForked && packet_.As<Forked>() != nullptr) {
          TakeForked(*packet_.As<Forked>(), &packet_);
        } else if (packet_.type() == Type::kReady) {
          zygote_report_.ready = 1;
          report_zygote_ = true;
        }
        packet_.CloseFds();
        break;
      case Receive::kNothing:
        return;
      case Receive::kMalformed:
        break;
      case Receive::kClosed:
        LoseZygote();
        return;
    }
  }
}

bool Shim::Send(const void* message, std::size_t size) {
  if (control_ < 0) return true;  // Nobody to tell; the state moves on.
  if (blocked_) return false;
  const int error = SendPacket(control_, message, size, nullptr, 0);
  blocked_ = error == EAGAIN;
  return !blocked_;
}

void Shim::Report() {
  if (report_hello_) {
    auto hello = Message<Hello>(Type::kHello);
    hello.pid = ::getpid();
    hello.has_cgroup = cgroup_.fd >= 0 ? 1 : 0;
    static_assert(sizeof(hello.cgroup) == sizeof(cgroup_.path));
    std::memcpy(hello.cgroup, cgroup_.path, sizeof(hello.cgroup));
    report_hello_ = !Send(&hello, sizeof(hello));
  }
  if (report_zygote_) report_zygote_ = !Send(&zygote_report_, sizeof(zygote_report_));
  for (Worker& worker : workers_) {
    if (worker.report_start) worker.report_start = !Send(&worker.started, sizeof(worker.started));
    if (worker.report_start || !worker.report_exit) continue;
    worker.report_exit = !Send(&worker.exited, sizeof(worker.exited));
    if (!worker.report_exit) worker.state = Worker::State::kTold;
  }
  // Last, so that every exit is known before it.
  if (report_stopped_ && !blocked_) report_stopped_ = !Send(&stopped_, sizeof(stopped_));
  if (report_synced_ && !blocked_) {
    auto synced = Message<Synced>(Type::kSynced);
    synced.request = resync_;
    report_synced_ = !Send(&synced, sizeof(synced));
  }
}

}  // namespace muster::agent::shim
