#include "agent/logs/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace muster::agent {
namespace {

constexpr std::size_t kOut = 0;
constexpr std::size_t kErr = 1;
constexpr std::size_t kMaxBacklog = std::size_t{1} << 20;
constexpr std::size_t kPumpAt = std::size_t{32} << 10;

}  // namespace

std::string_view NameOf(Stream stream) { return stream == Stream::kOut ? "stdout" : "stderr"; }

bool Console::Admit() {
  const Instant now = clock_.Now();
  if (now - window_begin_ >= std::chrono::seconds(1)) {
    window_begin_ = now;
    window_lines_ = 0;
    ReportHidden();
  }
  if (window_lines_ >= options_.lines_per_second) {
    ++hidden_;
    return false;
  }
  ++window_lines_;
  return true;
}

void Console::ReportHidden() {
  if (hidden_ == 0) return;
  Queue(kErr, fmt::format("muster: {} lines not shown here; they are in the run folder's logs\n",
                          hidden_));
  hidden_ = 0;
}

void Console::WorkerLine(Rank rank, Generation generation, Stream stream, const Line& line) {
  if (options_.quiet) return;
  const MutexLock lock(mutex_);
  if (!Admit()) return;
  std::string text =
      fmt::format("[{} {}{}] ", rank.value(), generation.value(), line.continued ? " …" : "");
  text += line.text;
  text += '\n';
  const bool one_sink = options_.out_fd == options_.err_fd;
  const std::size_t sink = stream == Stream::kOut && !one_sink ? kOut : kErr;
  Queue(sink, std::move(text));
  if (sinks_[sink].backlog.size() > kPumpAt) PumpSink(sink);
}

void Console::Say(std::string_view text) {
  const MutexLock lock(mutex_);
  // Workers' lines that came before stand before.
  PumpSink(kOut);
  Queue(kErr, std::string(text) + "\n");
  PumpSink(kErr);
}

void Console::Queue(std::size_t index, std::string text) {
  Sink& sink = sinks_[index];
  if (sink.dead) return;
  sink.backlog += text;
  if (sink.backlog.size() <= kMaxBacklog) return;
  // Half of it goes at once, in whole lines: one that is partly out is finished first.
  const std::size_t begin = sink.mid_line ? sink.backlog.find('\n') + 1 : 0;
  const std::size_t end = std::max(begin, sink.backlog.find('\n', kMaxBacklog / 2) + 1);
  hidden_ += static_cast<std::uint64_t>(
      std::count(sink.backlog.begin() + static_cast<std::ptrdiff_t>(begin),
                 sink.backlog.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
  sink.backlog.erase(begin, end - begin);
}

void Console::PumpSink(std::size_t index) {
  Sink& sink = sinks_[index];
  const int fd = index == kOut ? options_.out_fd : options_.err_fd;
  std::size_t written = 0;
  while (written < sink.backlog.size()) {
    pollfd ready{fd, POLLOUT, 0};
    if (::poll(&ready, 1, 0) <= 0 || (ready.revents & POLLOUT) == 0) {
      sink.dead = (ready.revents & (POLLERR | POLLNVAL)) != 0;
      break;
    }
    const std::size_t size = std::min<std::size_t>(sink.backlog.size() - written, PIPE_BUF);
    const ssize_t n = ::write(fd, sink.backlog.data() + written, size);
    if (n < 0 && errno == EINTR) continue;
    // A reader that went away ends the showing, never the run.
    sink.dead = n < 0 && errno != EAGAIN;
    if (n <= 0) break;
    sink.mid_line = sink.backlog[written + static_cast<std::size_t>(n) - 1] != '\n';
    written += static_cast<std::size_t>(n);
  }
  sink.backlog.erase(0, sink.dead ? sink.backlog.size() : written);
}

void Console::Pump() {
  const MutexLock lock(mutex_);
  PumpSink(kOut);
  PumpSink(kErr);
}

void Console::Flush(std::chrono::nanoseconds limit) {
  const Instant deadline = clock_.Now() + limit;
  {
    const MutexLock lock(mutex_);
    ReportHidden();
  }
  for (;;) {
    Pump();
    std::array<pollfd, 2> waiting{};
    {
      const MutexLock lock(mutex_);
      if (sinks_[kOut].backlog.empty() && sinks_[kErr].backlog.empty()) return;
      waiting[0] = {sinks_[kOut].backlog.empty() ? -1 : options_.out_fd, POLLOUT, 0};
      waiting[1] = {sinks_[kErr].backlog.empty() ? -1 : options_.err_fd, POLLOUT, 0};
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock_.Now());
    if (left.count() <= 0) return;
    ::poll(waiting.data(), waiting.size(), static_cast<int>(left.count()));
  }
}

}  // namespace muster::agent
