#include <cerrno>
#include <csignal>

#include "agent/shim/descendants.h"
#include "agent/shim/shim.h"

namespace muster::agent::shim {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
// A process in state D does not die of SIGKILL. It is reported, never waited for.
constexpr std::int64_t kKillLimitNs = 5'000 * kMillisecond;
constexpr std::int64_t kUndyingLimitNs = 200 * kMillisecond;
constexpr std::int64_t kForkLimitNs = 500 * kMillisecond;

}  // namespace

void Shim::SignalWorkers(const Signal& signal) {
  for (Worker& worker : workers_) {
    if (worker.state != Worker::State::kRunning) continue;
    if (signal.rank != kAllRanks && signal.rank != worker.started.rank) continue;
    if (signal.only_if_caught != 0 && !CatchesSignal(worker.started.pid, signal.signal)) continue;
    PidfdSignal(worker.pidfd, signal.signal);
    if (signal.signal == SIGKILL && worker.killed_ns == 0) worker.killed_ns = NowNs();
  }
}

std::uint32_t Shim::CountInState(Worker::State state) const {
  std::uint32_t count = 0;
  for (const Worker& worker : workers_) count += worker.state == state ? 1 : 0;
  return count;
}

/// Who has something to finish, or may yet begin.
bool Shim::AnyUsesGrace() const {
  for (const Worker& worker : workers_) {
    if (worker.state == Worker::State::kRunning && worker.killed_ns == 0) return true;
  }
  return AnyInState(Worker::State::kForking);
}

/// Of these SIGKILL had its time before.
std::uint32_t Shim::CountUndying() const {
  std::uint32_t count = 0;
  for (const Worker& worker : workers_) {
    const bool killed = worker.state == Worker::State::kRunning && worker.killed_ns != 0;
    if (killed && kill_began_ns_ - worker.killed_ns >= kKillLimitNs) ++count;
  }
  return count;
}

void Shim::BeginStop(int signal, std::int64_t grace_ns) {
  const std::int64_t deadline = NowNs() + grace_ns;
  if (ending_ == Ending::kKill) return;
  if (ending_ == Ending::kTerm) {
    if (deadline < deadline_ns_) deadline_ns_ = deadline;
    return;
  }
  ending_ = Ending::kTerm;
  FailForks(Worker::State::kQueued, ECANCELED);
  deadline_ns_ = deadline;
  stop_signal_ = grace_ns > 0 ? signal : SIGKILL;
  if (grace_ns == 0) return;  // ContinueEnding kills at once
  Signal message{};
  message.signal = signal;
  SignalWorkers(message);
}

void Shim::BeginKill() {
  ending_ = Ending::kKill;
  stop_signal_ = SIGKILL;
  kill_began_ns_ = NowNs();
  for (Worker& worker : workers_) {
    if (worker.killed_ns == 0) worker.killed_ns = kill_began_ns_;
  }
  if (leaving_) LoseZygote();
}

bool Shim::NothingLeft() {
  ReapStrays();
  if (AnyInState(Worker::State::kForking)) {
    if (NowNs() - kill_began_ns_ > kForkLimitNs) LoseZygote();
    return false;
  }
  // The zygote serves the next generation too, and the helper tells of this one; only a shim that
  // leaves takes it along.
  const std::uint32_t children = KillChildren(leaving_ ? Spared{} : Spared{zygote_, helper_});
  const bool populated = cgroup_.fd >= 0 && cgroup_.Populated();
  if (populated) cgroup_.Kill();
  // Workers are children of ours, and most of what is in the cgroup is both.
  const std::uint32_t inside = populated ? cgroup_.Count() : 0;
  const std::uint32_t running = CountInState(Worker::State::kRunning);
  left_ = children > inside ? children : inside;
  if (left_ < running) left_ = running;
  if (left_ == 0 && populated) left_ = 1;  // in a group that a worker made below ours
  return left_ == 0;
}

void Shim::ContinueEnding() {
  if (ending_ == Ending::kTerm) {
    if (AnyUsesGrace() && NowNs() < deadline_ns_) return;
    BeginKill();
  }
  if (ending_ != Ending::kKill) return;
  const bool done = NothingLeft();
  const std::uint32_t undying = AnyInState(Worker::State::kForking) ? 0 : CountUndying();
  const bool known = undying > 0 && left_ <= undying;
  const std::int64_t limit_ns = known ? kUndyingLimitNs : kKillLimitNs;
  if (!done && NowNs() - kill_began_ns_ < limit_ns) return;
  stopped_ = Stopped{};
  stopped_.header.type = Type::kStopped;
  stopped_.left = done ? 0 : left_;
  stopped_.time_ns = NowNs();
  stopped_.generation = stop_generation_;
  report_stopped_ = true;
  ending_ = Ending::kNo;
  for (Worker& worker : workers_) {
    if (worker.state == Worker::State::kTold) worker.state = Worker::State::kFree;
  }
  cgroup_.Renew();
}

void Shim::ControllerGone() {
  leaving_ = true;
  LoseZygote();
  BeginStop(SIGTERM, orphan_grace_ns_);
}

}  // namespace muster::agent::shim
