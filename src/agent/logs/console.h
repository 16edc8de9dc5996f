#pragma once
// What the user sees: workers' lines with their `[rank gen]` prefix, and our own sentences. A
// terminal that is held by Ctrl-S or a pipe that nobody reads never stops the run: text waits in a
// bounded backlog, then the oldest goes and is counted. Workers' lines are rate-limited as well,
// counted too; our own are not.
//
// Any thread; a leaf lock. Writes at most PIPE_BUF bytes after poll said there is room, because the
// descriptors are shared with other programs and must not be made non-blocking.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/logs/line_framer.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/strong_id.h"

namespace muster::agent {

enum class Stream { kOut, kErr };
std::string_view NameOf(Stream stream);  ///< "stdout", "stderr"

struct ConsoleOptions {
  int out_fd = 1;  ///< workers' stdout; the same as err_fd when stdout is for JSON
  int err_fd = 2;
  bool quiet = false;  ///< our own sentences only
  std::uint32_t lines_per_second = 2000;
};

class Console {
 public:
  Console(const ConsoleOptions& options, const Clock& clock) : options_(options), clock_(clock) {}

  void WorkerLine(Rank rank, Generation generation, Stream stream, const Line& line);
  /// A sentence of ours, on stderr, without its newline.
  void Say(std::string_view text);
  /// Writes what fits now.
  void Pump();
  /// Waits until everything is out, at most `limit`; also says how many lines were not shown.
  void Flush(std::chrono::nanoseconds limit);

 private:
  struct Sink {
    std::string backlog;
    bool mid_line = false;  ///< the backlog begins inside a line that is partly out
    bool dead = false;
  };
  bool Admit() MUSTER_REQUIRES(mutex_);
  void Queue(std::size_t sink, std::string text) MUSTER_REQUIRES(mutex_);
  void PumpSink(std::size_t sink) MUSTER_REQUIRES(mutex_);
  void ReportHidden() MUSTER_REQUIRES(mutex_);

  const ConsoleOptions options_;
  const Clock& clock_;
  Mutex mutex_;
  std::array<Sink, 2> sinks_ MUSTER_GUARDED_BY(mutex_);
  Instant window_begin_ MUSTER_GUARDED_BY(mutex_){};
  std::uint32_t window_lines_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t hidden_ MUSTER_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::agent
