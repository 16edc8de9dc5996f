#pragma once
// The logs of a run as one stream of lines: chosen by rank, stream, generation, time and pattern,
// merged in the order of their times. Lines whose time is not known come first, log by log. What is
// there now is read by one call of Read, what comes later by further calls, after Discover for the
// logs that are new. Memory is bounded by a chunk a log that is being read, whatever the logs'
// sizes are. One thread.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profile/logs/log_cursor.h"
#include "spec/pattern.h"

namespace muster::profile {

struct LogQuery {
  LogChoice choice;
  std::optional<std::int64_t> since_ns;
  /// The same on the wall clock: a log without an index is left out when it was written last
  /// before.
  WallTime since_wall{};
  std::optional<std::uint64_t> tail;       ///< only the last lines of those that are there
  const spec::Pattern* pattern = nullptr;  ///< looked for in the first 64 KiB of a line
  bool to_end = true;                      ///< an unfinished last line is shown too
};

class LogReader {
 public:
  /// Sees the logs that are there now; `files` and what `query` points to must outlive it.
  static Result<LogReader> Open(const RunFiles& files, const LogQuery& query);

  /// Gives every whole line that is there, until `take` returns false, or `stopped`, which is asked
  /// now and then, true. `to_end`: the writers are done, and what is left without an end is a line
  /// too.
  void Read(bool to_end, const std::function<bool(const LogPiece&)>& take,
            const std::function<bool()>& stopped = {});
  /// Logs that appeared since, from their start.
  Status Discover();
  /// After the first Read, which ends where the logs ended at Open: on to what they have grown by.
  void GoOn();

  /// Logs that are read; every one that there is, whatever was asked for.
  std::size_t chosen() const { return logs_.size(); }
  const std::vector<LogName>& all() const { return all_; }
  /// Chosen logs without an index.
  std::size_t without_times() const { return without_times_; }
  /// What could not be read, for people; empties them.
  std::vector<std::string> TakeNotes();

 private:
  struct Log {
    LogCursor cursor;
    bool shown = true;        ///< the line that goes on matched
    bool superseded = false;  ///< its rank has a newer process
  };
  LogReader(const RunFiles& files, const LogQuery& query) : files_(&files), query_(query) {}
  Status Add(bool first);
  void MarkSuperseded();
  void SeekSince(LogCursor& cursor, const FileSight& sight);
  void SeekTail();
  std::uint64_t CountMatches() const;
  bool Matches(std::string_view line) const;
  bool Give(Log& log, const LogPiece& piece, const std::function<bool(const LogPiece&)>& take);

  const RunFiles* files_;
  LogQuery query_;
  std::map<LogName, Log> logs_;
  std::vector<LogName> all_;
  std::vector<std::string> notes_;
  std::uint64_t skip_ = 0;  ///< lines in front of the tail
  std::uint64_t rounds_ = 0;
  std::size_t without_times_ = 0;
};

}  // namespace muster::profile
