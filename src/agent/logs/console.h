#pragma once
// What the user sees: workers' lines with their `[rank gen]` prefix, and our own sentences. A
// terminal that is held by Ctrl-S or a pipe that nobody reads never stops the run: text waits in a
// bounded backlog, then the oldest goes and is counted. Workers' lines are rate-limited as well,
// counted too; our own are not.
//
// Any thread; a leaf lock, never held over a write. Only Pump writes, and only one thread at a time
// pumps: the log keeper's writer, and whoever calls Flush once that one is gone. The descriptors
// are shared with other programs and must not be made non-blocking; a terminal or FIFO is opened
// anew for that, a socket is asked per write, and everything else gets at most PIPE_BUF bytes after
// poll said there is room.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/logs/line_framer.h"
#include "agent/logs/log_id.h"
#include "agent/logs/rank_display.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/strong_id.h"

namespace muster::agent {

struct ConsoleOptions {
  int out_fd = 1;  ///< workers' stdout; the same as err_fd when stdout is for JSON
  int err_fd = 2;
  bool quiet = false;              ///< our own sentences only
  std::vector<RankDisplay> ranks;  ///< by rank; those beyond it are shown with our prefix
  std::uint32_t lines_per_second = 2000;
};

class Console {
 public:
  Console(const ConsoleOptions& options, const Clock& clock);

  void WorkerLine(Rank rank, Generation generation, Stream stream, const Line& line);
  /// A sentence of ours, on stderr, without its newline.
  void Say(std::string_view text);
  /// Writes what fits now. Does nothing while another thread does it.
  void Pump();
  /// Pumps until everything is out, at most `limit`; also says how many lines were not shown.
  void Flush(std::chrono::nanoseconds limit);
  /// `wake` is called, from any thread, when a sentence waits for Pump.
  void OnText(std::function<void()> wake);

 private:
  struct Sink {
    std::string backlog;
    bool mid_line = false;  ///< the backlog begins inside a line that is partly out
    bool dead = false;
  };
  bool Admit() MUSTER_REQUIRES(mutex_);
  void Queue(std::size_t sink, std::string_view text) MUSTER_REQUIRES(mutex_);
  void ReportHidden() MUSTER_REQUIRES(mutex_);
  bool AnyWaits() MUSTER_REQUIRES(mutex_);
  struct Piece {
    std::string text;
    bool mid_line = false;  ///< it begins inside a line
  };
  void PumpSink(std::size_t sink);
  Piece TakeFront(std::size_t sink);
  void Settle(std::size_t sink, const Piece& piece, std::size_t written, bool dead);

  const ConsoleOptions options_;
  const Clock& clock_;
  std::array<Fd, 2> own_;       ///< non-blocking ways to the same terminals or FIFOs
  std::array<int, 2> targets_;  ///< what is written to
  Mutex mutex_;
  CondVar pumped_;
  std::array<Sink, 2> sinks_ MUSTER_GUARDED_BY(mutex_);
  bool pumping_ MUSTER_GUARDED_BY(mutex_) = false;
  std::function<void()> wake_ MUSTER_GUARDED_BY(mutex_);
  Instant window_begin_ MUSTER_GUARDED_BY(mutex_){};
  std::uint32_t window_lines_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t hidden_ MUSTER_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::agent
