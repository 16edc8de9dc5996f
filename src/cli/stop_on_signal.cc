#include "cli/stop_on_signal.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "base/thread.h"

namespace muster::cli {

bool IsIgnored(int number) {
  struct sigaction action{};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

Result<std::unique_ptr<StopOnSignal>> StopOnSignal::Begin() {
  std::vector<int> numbers;
  for (const int number : {SIGINT, SIGTERM}) {
    if (!IsIgnored(number)) numbers.push_back(number);
  }
  os::SignalFd signals = MUSTER_TRY(os::SignalFd::Block(numbers));
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoError("eventfd", errno);
  std::unique_ptr<StopOnSignal> stop(new StopOnSignal(std::move(signals), std::move(wake)));
  stop->thread_ = MUSTER_TRY(StartThread(
      "muster-signals", [&self = *stop](const std::stop_token& end) { self.Watch(end); }));
  return stop;
}

StopOnSignal::~StopOnSignal() {
  thread_.request_stop();
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(wake_.get(), &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
}

void StopOnSignal::Watch(const std::stop_token& end) {
  while (!end.stop_requested()) {
    std::array<pollfd, 2> fds{{{signals_.fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) > 0 && fds[0].revents != 0) TakeSignals();
  }
}

void StopOnSignal::TakeSignals() {
  for (;;) {
    const auto signal = signals_.Read();
    if (!signal || !*signal) break;
    // Whoever asks twice does not want to wait for the cleaning.
    if (number_ != 0) ::_exit(128 + (*signal)->number);
    number_ = (*signal)->number;
  }
  if (number_ != 0) source_.request_stop();
}

}  // namespace muster::cli
