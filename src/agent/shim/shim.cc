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

template <typename T>
T Message(Type type) {
  T message{};
  message.header.type = type;
  return message;
}

}  // namespace

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
  void* shared = ::mmap(nullptr, kMaxWorkers * sizeof(std::int32_t), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return false;
  exec_errors_ = static_cast<std::int32_t*>(shared);
  if (cgroup_.Make(options.id)) ProbeCgroup();
  return true;
}

int Shim::Run(const ShimOptions& options) {
  if (!SetUp(options)) return 1;
  for (;;) {
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

void Shim::Poll() {
  static pollfd polled[kMaxWorkers + 5];
  std::uint32_t count = 0;
  const auto add = [&](int fd, short events) { polled[count++] = {fd, events, 0}; };
  add(control_, static_cast<short>(blocked_ ? POLLIN | POLLOUT : POLLIN));
  add(signals_, POLLIN);
  add(zygote_socket_, POLLIN);
  add(zygote_pidfd_, POLLIN);
  add(ending_ == Ending::kKill ? cgroup_.events_fd : -1, POLLPRI);
  for (Worker& worker : workers_) add(worker.pidfd, POLLIN);
  int timeout_ms = kIdleMs;
  if (ending_ == Ending::kKill) timeout_ms = kKillRoundMs;
  if (ending_ == Ending::kTerm) {
    const std::int64_t left_ns = deadline_ns_ - NowNs();
    timeout_ms = left_ns <= 0 ? 0 : static_cast<int>(left_ns / 1'000'000 + 1);
  }
  if (::poll(polled, count, timeout_ms) > 0) Dispatch(polled, count);
}

void Shim::Dispatch(const pollfd* polled, std::uint32_t count) {
  if (polled[0].revents & POLLOUT) blocked_ = false;
  if (polled[1].revents != 0) DrainSignals();
  // The reply that a worker was forked comes before its death is looked at.
  if (polled[2].revents != 0) ReceiveZygote();
  if (polled[3].revents != 0) ReapZygote();
  for (std::uint32_t i = 5; i < count; ++i) {
    if (polled[i].revents != 0) ReapWorker(&workers_[i - 5]);
  }
  ReapStrays();
  if (polled[0].revents & (POLLIN | POLLHUP | POLLERR)) ReceiveControl();
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
    const Stop& stop = *packet->As<Stop>();
    constexpr std::uint64_t kMaxGraceNs = 3600ull * 1'000'000'000;
    BeginStop(stop.signal,
              static_cast<std::int64_t>(stop.grace_ns < kMaxGraceNs ? stop.grace_ns : kMaxGraceNs));
  } else if (type == Type::kGoodbye) {
    leaving_ = true;
    BeginStop(SIGKILL, 0);
  }
}

void Shim::ReceiveZygote() {
  for (;;) {
    switch (ReceivePacket(zygote_socket_, &packet_)) {
      case Receive::kPacket:
        if (packet_.type() == Type::kForked && packet_.As<Forked>() != nullptr) {
          TakeForked(*packet_.As<Forked>(), &packet_);
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
    std::memcpy(hello.cgroup, cgroup_.path, sizeof(hello.cgroup));
    report_hello_ = !Send(&hello, sizeof(hello));
  }
  if (report_zygote_) report_zygote_ = !Send(&zygote_report_, sizeof(zygote_report_));
  for (Worker& worker : workers_) {
    if (worker.report_start) worker.report_start = !Send(&worker.started, sizeof(worker.started));
    if (worker.report_start || !worker.report_exit) continue;
    worker.report_exit = !Send(&worker.exited, sizeof(worker.exited));
    if (!worker.report_exit) worker.state = Worker::State::kFree;
  }
  // Last, so that every exit is known before it.
  if (report_stopped_ && !blocked_) report_stopped_ = !Send(&stopped_, sizeof(stopped_));
}

}  // namespace muster::agent::shim
