#include "os/signals.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace muster::os {

Result<SignalFd> SignalFd::Block(std::span<const int> signals) {
  sigset_t set;
  sigset_t before;
  ::sigemptyset(&set);
  for (const int number : signals) {
    if (::sigaddset(&set, number) < 0) {
      return Error(Code::kInvalid, fmt::format("there is no signal {}", number));
    }
  }
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return ErrnoError("signalfd", errno);
  const int failed = ::pthread_sigmask(SIG_BLOCK, &set, &before);
  if (failed != 0) return ErrnoError("block signals", failed);
  return SignalFd(std::move(fd), before);
}

SignalFd::SignalFd(SignalFd&& other) noexcept
    : fd_(std::move(other.fd_)), before_(other.before_), restore_(other.restore_) {}

SignalFd::~SignalFd() {
  if (fd_.valid() && restore_) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Result<std::optional<Signal>> SignalFd::Read() {
  signalfd_siginfo info{};
  const auto n = ::read(fd_.get(), &info, sizeof(info));
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<Signal>();
  if (n < 0) return ErrnoError("read a signal", errno);
  return std::optional(Signal{.number = static_cast<int>(info.ssi_signo),
                              .sender = static_cast<pid_t>(info.ssi_pid),
                              .sender_uid = info.ssi_uid});
}

std::string SignalName(int number) {
  if (const char* name = ::sigabbrev_np(number)) return fmt::format("SIG{}", name);
  if (number >= SIGRTMIN && number <= SIGRTMAX)
    return fmt::format("SIGRTMIN+{}", number - SIGRTMIN);
  return fmt::format("signal {}", number);
}

std::vector<int> EndingSignals() {
  std::vector<int> signals = {SIGINT, SIGTERM, SIGQUIT};
  struct sigaction hup{};
  if (::sigaction(SIGHUP, nullptr, &hup) == 0 && hup.sa_handler != SIG_IGN) {
    signals.push_back(SIGHUP);
  }
  return signals;
}

}  // namespace muster::os
