#pragma once
// Workers' output: pipes → bounded memory → one file a rank, stream and generation, and lines on
// the console. A worker is never blocked by our disk or terminal and a full disk never ends a run:
// what cannot be kept is dropped oldest first, counted, marked in the file and reported.
//
// Two threads: one empties the pipes and does nothing else, one writes. Add, Finish, Tail and
// TakeNews are for the owner thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/logs/console.h"
#include "agent/logs/log_id.h"
#include "agent/logs/log_loss.h"
#include "agent/logs/stream_buffer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/file_system.h"
#include "base/result.h"
#include "base/strong_id.h"

namespace muster::agent {

struct LogKeeperOptions {
  FileSystem* files = nullptr;
  std::string folder;                ///< "logs" of the run; made here
  std::shared_ptr<Console> console;  ///< kept until a writer that hung comes back
  const Clock* clock = nullptr;
  Bytes stream_capacity = kStreamCapacity;
  /// Gets what a pipe brought, from the reader's thread, which must not wait there; may be empty.
  std::function<void(const LogId& id, std::string_view bytes)> tap;
};

class LogKeeper {
 public:
  static Result<std::unique_ptr<LogKeeper>> Start(const LogKeeperOptions& options);
  ~LogKeeper();

  /// Takes over the read end of a pipe; `size` bytes of it are in its file already.
  Status Add(const LogId& id, Fd pipe, std::uint64_t size = 0);
  /// Where its bytes go, without ".log".
  static std::string PathOf(const std::string& folder, const LogId& id);
  /// The worker is dead: its pipe is read to its end, or to `deadline`, when a child of its own
  /// still holds it.
  void Finish(Rank rank, Generation generation, Instant deadline);
  /// The pipe is at its end, or was given up.
  bool Ended(const LogId& id) const;
  /// The last 64 KiB.
  std::string Tail(const LogId& id) const;
  /// The same once the pipe is at its end, or after `limit`: a dead worker's last words may still
  /// be on their way.
  std::string LastWords(const LogId& id, std::chrono::nanoseconds limit) const;
  /// Forgets a log that ended; its file is complete.
  void Forget(Generation up_to);
  /// Since the last call.
  std::vector<LogLoss> TakeLosses();

  /// Reads every pipe to its end or `limit`, writes what is held and joins. False when a write did
  /// not come back in time: the caller must then leave by _exit, and `files` and `clock` must last
  /// until then. Further calls say the same.
  bool Stop(std::chrono::nanoseconds limit);

 private:
  class Impl;
  explicit LogKeeper(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  ///< the writer thread's too
};

}  // namespace muster::agent
