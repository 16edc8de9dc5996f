#include "cli/live.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <vector>

#include "base/clock.h"
#include "cli/stop_on_signal.h"

namespace muster::cli {

Result<Live> Live::Begin(const LiveOptions& options) {
  std::vector<int> numbers;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (!IsIgnored(number)) numbers.push_back(number);
  }
  if (options.terminal) {
    numbers.push_back(SIGWINCH);
    if (!IsIgnored(SIGTSTP)) numbers.push_back(SIGTSTP);
  }
  // A reader that goes away is told by write(2).
  if (!IsIgnored(SIGPIPE)) numbers.push_back(SIGPIPE);
  return Live(MUSTER_TRY(os::SignalFd::Block(numbers)), options);
}

std::optional<Live::Woke> Live::TakeSignal() {
  std::optional<Woke> woke;
  for (;;) {
    const auto signal = signals_.Read();
    if (!signal || !*signal) return woke;
    const int number = (*signal)->number;
    if (number == SIGPIPE) continue;
    if (number == SIGWINCH || number == SIGTSTP) {
      woke = number == SIGWINCH ? Woke::kResized : Woke::kSuspend;
      continue;
    }
    signal_ = number;
    return Woke::kStop;
  }
}

Live::Woke Live::Wait(std::chrono::nanoseconds limit) {
  const Instant deadline = SystemClock().Now() + limit;
  for (;;) {
    // Events of stdout are not waited for: poll tells of a reader that went away unasked.
    std::array<pollfd, 3> fds{{{signals_.fd(), POLLIN, 0},
                               {STDOUT_FILENO, 0, 0},
                               {options_.input ? STDIN_FILENO : -1, POLLIN, 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SystemClock().Now());
    const int ready = ::poll(fds.data(), fds.size(),
                             static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000)));
    if (fds[0].revents != 0) {
      if (const auto woke = TakeSignal()) return *woke;
    }
    if (ready > 0 && (fds[1].revents & (POLLERR | POLLNVAL | POLLHUP)) != 0) return Woke::kStop;
    if (ready > 0 && fds[2].revents != 0) return Woke::kInput;
    if (ready == 0 || left.count() <= 0) return Woke::kTime;
  }
}

bool Live::Write(std::string_view text) {
  while (!text.empty()) {
    std::array<pollfd, 2> fds{{{STDOUT_FILENO, POLLOUT, 0}, {signals_.fd(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return false;
    if (fds[1].revents != 0 && TakeSignal() == Woke::kStop) return false;
    if (fds[0].revents == 0) continue;
    // A pipe that poll calls ready takes so much without waiting.
    const ssize_t n =
        ::write(STDOUT_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) {
      TakeSignal();  // SIGPIPE must not be left for when it is let in again
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void Live::Suspend() { ::raise(SIGSTOP); }

}  // namespace muster::cli
