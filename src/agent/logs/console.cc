#include "agent/logs/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

/// A second, non-blocking open file of the terminal or FIFO behind `fd`. poll's word is not enough
/// for them: a terminal blocks in the middle of a write, and somebody else may fill a FIFO after
/// poll said there is room. Invalid for everything else, whose offset would begin anew.
Fd Reopen(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) < 0) return Fd();
  if (!S_ISFIFO(info.st_mode) && !(S_ISCHR(info.st_mode) && ::isatty(fd) == 1)) return Fd();
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  return Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

/// As write(2), without waiting wherever that can be had.
ssize_t WriteNow(int fd, const std::string& text) {
  for (;;) {
    ssize_t n = ::send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == ENOTSOCK) n = ::write(fd, text.data(), text.size());
    if (n >= 0 || errno != EINTR) return n;
  }
}

}  // namespace

std::string_view NameOf(Stream stream) { return stream == Stream::kOut ? "stdout" : "stderr"; }

Console::Console(const ConsoleOptions& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      own_{Reopen(options.out_fd), Reopen(options.err_fd)},
      targets_{own_[kOut].valid() ? own_[kOut].get() : options.out_fd,
               own_[kErr].valid() ? own_[kErr].get() : options.err_fd} {}

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
  static const RankDisplay kPlain;
  const RankDisplay& look =
      rank.value() < options_.ranks.size() ? options_.ranks[rank.value()] : kPlain;
  if (stream == Stream::kOut ? !look.out : !look.err) return;
  const bool one_sink = options_.out_fd == options_.err_fd;
  const std::size_t sink = stream == Stream::kOut && !one_sink ? kOut : kErr;
  bool much = false;
  {
    const MutexLock lock(mutex_);
    if (!Admit()) return;
    std::string text = look.prefix;
    if (text.empty()) {
      text =
          fmt::format("[{} {}{}] ", rank.value(), generation.value(), line.continued ? " …" : "");
    }
    text += line.text;
    text += '\n';
    Queue(sink, text);
    much = sinks_[sink].backlog.size() > kPumpAt;
  }
  if (much) Pump();
}

void Console::Say(std::string_view text) {
  std::function<void()> wake;
  {
    const MutexLock lock(mutex_);
    Queue(kErr, std::string(text) + "\n");
    wake = wake_;
  }
  if (wake) wake();
}

void Console::OnText(std::function<void()> wake) {
  const MutexLock lock(mutex_);
  wake_ = std::move(wake);
}

void Console::Queue(std::size_t index, std::string_view text) {
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

/// Takes the next bytes to write out of the backlog, so that Queue never drops half of a write.
Console::Piece Console::TakeFront(std::size_t index) {
  const MutexLock lock(mutex_);
  Sink& sink = sinks_[index];
  // Only an open file of our own takes as much as fits.
  Piece piece{sink.backlog.substr(0, own_[index].valid() ? kPumpAt : PIPE_BUF), sink.mid_line};
  sink.backlog.erase(0, piece.text.size());
  if (!piece.text.empty()) sink.mid_line = piece.text.back() != '\n';
  return piece;
}

/// Puts back what was not written; a dead sink keeps nothing.
void Console::Settle(std::size_t index, const Piece& piece, std::size_t written, bool dead) {
  const MutexLock lock(mutex_);
  Sink& sink = sinks_[index];
  sink.dead = dead;
  if (dead) sink.backlog.clear();
  if (dead || written == piece.text.size()) return;
  sink.mid_line = written == 0 ? piece.mid_line : piece.text[written - 1] != '\n';
  sink.backlog.insert(0, piece.text, written);
}

void Console::PumpSink(std::size_t index) {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (sinks_[index].backlog.empty()) return;
    }
    pollfd ready{targets_[index], POLLOUT, 0};
    if (::poll(&ready, 1, 0) <= 0) return;
    const Piece piece = TakeFront(index);
    ssize_t n = -1;
    bool dead = (ready.revents & POLLOUT) == 0;
    if (!dead) {
      n = WriteNow(targets_[index], piece.text);
      // A reader that went away ends the showing, never the run.
      dead = n < 0 && errno != EAGAIN;
    }
    Settle(index, piece, static_cast<std::size_t>(std::max<ssize_t>(n, 0)), dead);
    if (n <= 0) return;
  }
}

void Console::Pump() {
  {
    const MutexLock lock(mutex_);
    if (pumping_) return;
    pumping_ = true;
  }
  // In this order: workers' lines that came before a sentence stand before it.
  PumpSink(kOut);
  PumpSink(kErr);
  const MutexLock lock(mutex_);
  pumping_ = false;
  pumped_.NotifyAll();
}

bool Console::AnyWaits() {
  return pumping_ || !sinks_[kOut].backlog.empty() || !sinks_[kErr].backlog.empty();
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
      // Another thread is inside a write; only where that blocks does this take long.
      while (pumping_ && pumped_.WaitUntil(mutex_, deadline)) {
      }
      if (!AnyWaits()) return;
      for (const std::size_t sink : {kOut, kErr}) {
        waiting[sink] = {sinks_[sink].backlog.empty() ? -1 : targets_[sink], POLLOUT, 0};
      }
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock_.Now());
    if (left.count() <= 0) return;
    ::poll(waiting.data(), waiting.size(), static_cast<int>(left.count()));
  }
}

}  // namespace muster::agent
