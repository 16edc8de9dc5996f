#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include "agent/shim/child.h"
#include "agent/shim/command.h"
#include "agent/shim/shim.h"
#include "os/clone.h"

namespace muster::agent::shim {
namespace {

/// fork with a pidfd, into a cgroup when `cgroup_fd` is one. In the child the value is 0.
pid_t CloneWithPidfd(int cgroup_fd, int* pidfd) {
  return os::Clone(
      {.flags = CLONE_PIDFD, .pidfd = pidfd, .exit_signal = SIGCHLD, .cgroup_fd = cgroup_fd});
}

/// The child's way from clone to the program. `error` is shared with the shim.
[[noreturn]] void RunChild(const ChildPlan& plan, int command_fd, std::int32_t* error) {
  Command command;
  int failed = MapCommand(command_fd, &command);
  if (failed == 0) failed = BecomeWorker(plan, command);
  if (failed == 0) {
    ::execve(command.program, command.argv, command.environ);
    failed = errno;
  }
  *error = failed;
  ::_exit(127);
}

// What the zygote may be asked for before it answers: its socket holds some 280 packets, and the
// descriptors of those count as in flight.
constexpr std::uint32_t kMaxForking = 64;
constexpr std::int64_t kMuteLimitNs = 5'000'000'000;
constexpr std::int64_t kWatchNs = 200'000'000;

void CloseLogs(Worker* worker) {
  for (int& log : worker->logs) {
    if (log >= 0) ::close(log);
    log = -1;
  }
}

/// As much of it as came; false when that does not say whose worker it is.
bool ReadSpawn(const Packet& packet, Spawn* spawn) {
  if (packet.size < offsetof(Spawn, via_zygote)) return false;
  std::memcpy(spawn, packet.bytes, packet.size < sizeof(*spawn) ? packet.size : sizeof(*spawn));
  return true;
}

/// Why the descriptors of a well-formed request are not all there.
int MissingFds(const Packet& packet) { return packet.fd_count == 0 ? EMFILE : EINVAL; }

}  // namespace

Worker* Shim::FreeSlot() {
  Worker* told = nullptr;
  for (Worker& worker : workers_) {
    if (worker.state == Worker::State::kFree && !worker.report_start) return &worker;
    if (worker.state == Worker::State::kTold) told = &worker;
  }
  return told;
}

/// A child that dies at birth, or cannot be born, shows that this cgroup is not for us.
void Shim::ProbeCgroup() {
  int pidfd = -1;
  siginfo_t info{};
  const pid_t pid = CloneWithPidfd(cgroup_.fd, &pidfd);
  if (pid == 0) ::_exit(0);
  if (pid > 0) {
    ::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | __WALL);
    ::close(pidfd);
    if (info.si_code == CLD_EXITED) return;
  }
  cgroup_.Remove();
}

void Shim::StartZygote(Packet* packet) {
  if (zygote_ != 0) return;
  zygote_report_ = Message<Zygote>(Type::kZygote);
  report_zygote_ = true;
  const Spawn* spawn = packet->As<Spawn>();
  if (spawn == nullptr || packet->fd_count != 4) {
    zygote_report_.error = spawn == nullptr ? EINVAL : MissingFds(*packet);
  } else if (ending_ != Ending::kNo) {
    zygote_report_.error = ECANCELED;
  } else if (!ExecZygote(packet)) {
    zygote_report_.error = errno;
  }
}

/// False and errno.
bool Shim::ExecZygote(Packet* packet) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return false;
  const int fds[] = {packet->fds[1], packet->fds[2], packet->fds[3], pair[1]};
  const ChildPlan plan{::getpid(), packet->As<Spawn>()->umask, fds, 4, &nofile_};
  static std::int32_t ignored;  // a failed exec shows as exit code 127
  const pid_t pid = CloneWithPidfd(-1, &zygote_pidfd_);
  if (pid == 0) RunChild(plan, packet->fds[0], &ignored);
  const int error = errno;
  ::close(pair[1]);
  if (pid < 0) {
    zygote_pidfd_ = -1;
    ::close(pair[0]);
    errno = error;
    return false;
  }
  zygote_ = pid;
  zygote_served_ = false;
  zygote_socket_ = pair[0];
  zygote_report_.pid = pid;
  zygote_report_.alive = 1;
  return true;
}

/// When it ends it is reaped as a stray. Not in the job's cgroup, where what it looks
/// at may be frozen.
void Shim::StartHelper(const Packet& packet) {
  if (packet.As<Help>() == nullptr || packet.fd_count != 4 || ending_ != Ending::kNo) return;
  const ChildPlan plan{::getpid(), 077, packet.fds + 1, 3, nullptr};
  static std::int32_t ignored;  // whoever reads its output sees none
  int pidfd = -1;
  const pid_t pid = CloneWithPidfd(-1, &pidfd);
  if (pid == 0) RunChild(plan, packet.fds[0], &ignored);
  if (pid <= 0) return;
  helper_ = pid;
  ::close(pidfd);
}

/// Without a slot: the controller knows kMaxWorkers and never asks for more, so this answer alone
/// may be lost when the socket is full.
void Shim::Refuse(const Spawn& spawn, int error) {
  auto started = Message<Started>(Type::kStarted);
  started.generation = spawn.generation;
  started.rank = spawn.rank;
  started.error = error;
  Send(&started, sizeof(started));
}

void Shim::FailStart(Worker* worker, int error) {
  worker->request.CloseFds();
  CloseLogs(worker);
  worker->state = Worker::State::kFree;
  worker->started.error = error;
  worker->report_start = true;
}

void Shim::StartWorker(Packet* packet) {
  Spawn spawn;
  if (!ReadSpawn(*packet, &spawn)) return;
  Worker* worker = FreeSlot();
  if (worker == nullptr) return Refuse(spawn, EAGAIN);
  *worker = Worker{};
  worker->started.header.type = Type::kStarted;
  worker->exited.header.type = Type::kExited;
  worker->started.generation = worker->exited.generation = spawn.generation;
  worker->started.rank = worker->exited.rank = spawn.rank;
  worker->forked = spawn.via_zygote != 0;
  worker->started.forked = spawn.via_zygote;
  if (packet->As<Spawn>() == nullptr || spawn.extra_fds > kMaxExtraFds) {
    return FailStart(worker, EINVAL);
  }
  if (packet->fd_count != kSpawnFds + spawn.extra_fds) {
    return FailStart(worker, MissingFds(*packet));
  }
  if (ending_ != Ending::kNo) return FailStart(worker, ECANCELED);
  for (std::uint32_t i = 0; i < 2; ++i) worker->logs[i] = packet->Take(4 + i);
  if (worker->forked) {
    if (zygote_socket_ < 0) return FailStart(worker, ESRCH);
    worker->state = Worker::State::kQueued;
    worker->request = *packet;
    worker->fork_request = next_request_++;
    packet->fd_count = 0;  // the slot's now
  } else if (const int error = ExecWorker(spawn, worker, *packet); error != 0) {
    FailStart(worker, error);
  }
}

/// Hands queued workers to the zygote, oldest first, as far as it can take them.
void Shim::SendForks() {
  while (CountInState(Worker::State::kForking) < kMaxForking) {
    Worker* oldest = nullptr;
    for (Worker& worker : workers_) {
      if (worker.state != Worker::State::kQueued) continue;
      if (oldest == nullptr || worker.fork_request < oldest->fork_request) oldest = &worker;
    }
    if (oldest == nullptr) return;
    const int error = ForkFromZygote(oldest);
    if (error == EAGAIN || error == ETOOMANYREFS) return;
    if (error != 0) FailStart(oldest, error);
  }
}

int Shim::ForkFromZygote(Worker* worker) {
  if (zygote_socket_ < 0) return ESRCH;
  const Packet& packet = worker->request;
  Spawn fork = *packet.As<Spawn>();
  fork.header.type = Type::kFork;
  fork.request = worker->fork_request;
  fork.slot = static_cast<std::uint32_t>(worker - workers_);
  fork.in_cgroup = cgroup_.fd >= 0 ? 1 : 0;
  fork.parent = ::getpid();
  int fds[kMaxPacketFds];
  for (int i = 0; i < 4; ++i) fds[i] = packet.fds[i];
  fds[4] = cgroup_.fd >= 0 ? cgroup_.fd : packet.fds[1];
  fds[5] = errors_.fd;
  for (std::uint32_t i = 0; i < fork.extra_fds; ++i) fds[kForkFds + i] = packet.fds[kSpawnFds + i];
  errors_.errors[fork.slot] = 0;
  const int error = SendPacket(zygote_socket_, &fork, sizeof(fork), fds, kForkFds + fork.extra_fds);
  // A zygote that died and is not reaped yet; what it answered before is read with its end.
  if (error == EPIPE || error == ECONNRESET) return ESRCH;
  if (error != 0) return error;
  worker->request.CloseFds();
  worker->state = Worker::State::kForking;
  return 0;
}

int Shim::ExecWorker(const Spawn& spawn, Worker* worker, const Packet& packet) {
  int fds[3 + kMaxExtraFds];
  for (int i = 0; i < 3; ++i) fds[i] = packet.fds[1 + i];
  for (std::uint32_t i = 0; i < spawn.extra_fds; ++i) fds[3 + i] = packet.fds[kSpawnFds + i];
  const ChildPlan plan{::getpid(), spawn.umask, fds, 3 + spawn.extra_fds, &nofile_};
  std::int32_t* exec_error = &errors_.errors[worker - workers_];
  *exec_error = 0;
  pid_t pid = CloneWithPidfd(cgroup_.fd, &worker->pidfd);
  if (pid < 0 && cgroup_.fd >= 0 && errno != EAGAIN && errno != ENOMEM) {
    // A cgroup that takes no process: a worker outside of it is still our child.
    pid = CloneWithPidfd(-1, &worker->pidfd);
  }
  if (pid == 0) RunChild(plan, packet.fds[0], exec_error);
  if (pid < 0) {
    worker->pidfd = -1;
    return errno;
  }
  worker->state = Worker::State::kRunning;
  worker->started.pid = worker->exited.pid = pid;
  worker->report_start = true;
  return 0;
}

void Shim::TakeForked(const Forked& reply, Packet* packet) {
  for (Worker& worker : workers_) {
    if (worker.state != Worker::State::kForking || worker.fork_request != reply.request) continue;
    zygote_served_ = true;
    zygote_mute_ns_ = 0;
    if (reply.error != 0) return FailStart(&worker, reply.error);
    if (packet->fd_count != 1) {
      // It runs, but nothing would tell us of its death. It is our child and not reaped, so the pid
      // is still its own.
      if (reply.pid > 1) ::kill(reply.pid, SIGKILL);
      return FailStart(&worker, MissingFds(*packet));
    }
    worker.report_start = true;
    worker.state = Worker::State::kRunning;
    worker.started.pid = worker.exited.pid = reply.pid;
    worker.pidfd = packet->Take(0);
    if (ending_ != Ending::kNo) PidfdSignal(worker.pidfd, stop_signal_);
    return;
  }
}

void Shim::ReapWorker(Worker* worker) {
  siginfo_t info{};
  const auto pidfd = static_cast<id_t>(worker->pidfd);
  if (::waitid(P_PIDFD, pidfd, &info, WEXITED | WNOHANG | __WALL) < 0 || info.si_pid == 0) return;
  Exited& exited = worker->exited;
  exited.time_ns = NowNs();
  exited.code = info.si_code == CLD_EXITED ? info.si_status : 0;
  exited.signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
  exited.dumped_core = info.si_code == CLD_DUMPED ? 1 : 0;
  exited.exec_error = errors_.errors[worker - workers_];
  worker->state = Worker::State::kDead;
  worker->report_exit = true;
  ::close(worker->pidfd);
  worker->pidfd = -1;
  CloseLogs(worker);
}

/// A fork takes some 25 ms; a zygote that served before and is silent for much longer is stopped or
/// hangs. Only time in which we looked counts: who stopped it may have stopped us as well.
void Shim::WatchZygote() {
  const std::int64_t now = NowNs();
  const std::int64_t passed = now - watched_ns_;
  watched_ns_ = now;
  if (!zygote_served_ || !AnyInState(Worker::State::kForking)) {
    zygote_mute_ns_ = 0;
    return;
  }
  zygote_mute_ns_ += passed < kWatchNs ? passed : kWatchNs;
  if (zygote_mute_ns_ > kMuteLimitNs) LoseZygote(ETIMEDOUT);
}

void Shim::LoseZygote(int error) {
  if (zygote_socket_ >= 0) ::close(zygote_socket_);
  zygote_socket_ = -1;
  if (zygote_pidfd_ >= 0) PidfdSignal(zygote_pidfd_, SIGKILL);
  FailForks(Worker::State::kForking, error);
  FailForks(Worker::State::kQueued, error);
}

void Shim::FailForks(Worker::State state, int error) {
  for (Worker& worker : workers_) {
    if (worker.state == state) FailStart(&worker, error);
  }
}

void Shim::ReapZygote() {
  siginfo_t info{};
  if (zygote_pidfd_ < 0) return;
  const auto pidfd = static_cast<id_t>(zygote_pidfd_);
  if (::waitid(P_PIDFD, pidfd, &info, WEXITED | WNOHANG | __WALL) < 0 || info.si_pid == 0) return;
  ReceiveZygote();  // Replies that it sent before it died still count.
  LoseZygote();
  ::close(zygote_pidfd_);
  zygote_pidfd_ = -1;
  zygote_ = 0;
  zygote_report_.alive = 0;
  zygote_report_.status = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
  report_zygote_ = true;
}

void Shim::ReapStrays() {
  for (;;) {
    siginfo_t info{};
    constexpr int kPeek = WEXITED | WNOHANG | __WALL | WNOWAIT;
    if (::waitid(P_ALL, 0, &info, kPeek) < 0 || info.si_pid == 0) return;
    Worker* owner = nullptr;
    for (Worker& worker : workers_) {
      if (worker.state == Worker::State::kRunning && worker.exited.pid == info.si_pid) {
        owner = &worker;
      }
    }
    if (owner != nullptr) {
      ReapWorker(owner);
      if (owner->state == Worker::State::kRunning) return;
      continue;
    }
    if (info.si_pid == zygote_) {
      ReapZygote();
      continue;
    }
    // It may be a worker whose kForked is still on its way; that one is reaped by its pidfd.
    if (AnyInState(Worker::State::kForking)) return;
    if (info.si_pid == helper_) helper_ = 0;
    siginfo_t reaped{};
    ::waitid(P_PID, static_cast<id_t>(info.si_pid), &reaped, WEXITED | WNOHANG | __WALL);
  }
}

}  // namespace muster::agent::shim
