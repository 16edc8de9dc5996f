#pragma once
// Reads the index of one log (log_index.h) as its reader moves on, a few KiB of it at a time. Where
// the index is missing, torn or odd, a time is not known or less exact, and never an error. One
// thread.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "profile/logs/log_index.h"
#include "profile/report/run_files.h"

namespace muster::profile {

class LogTimes {
 public:
  LogTimes(const RunFiles& files, std::string path) : files_(&files), path_(std::move(path)) {}

  /// Reads on until the marks of all bytes up to `end` are known, or the index is at its end.
  void LoadTo(std::uint64_t end);
  /// When the byte at `offset` came, as far as it is loaded. Offsets must not go back.
  std::optional<std::int64_t> At(std::uint64_t offset);
  /// The first mark at or behind `t_ns`, by bisection; nothing when there is none. Reading goes on
  /// there.
  std::optional<LogMark> SeekTime(std::int64_t t_ns);
  /// Goes on at the mark in front of `offset`, for a reader that begins there.
  void SeekOffset(std::uint64_t offset);
  /// False: there is no index, or nothing in it.
  bool exists() const;

 private:
  std::optional<LogMark> Read(std::uint64_t record) const;
  std::uint64_t Records() const;
  template <typename Before>
  std::uint64_t Bisect(Before before) const;
  void Restart(std::uint64_t record);

  const RunFiles* files_;
  std::string path_;
  std::uint64_t next_record_ = 0;
  std::optional<LogMark> now_;  ///< that of the offset last asked for
  LogMark newest_;
  std::deque<LogMark> ahead_;
};

}  // namespace muster::profile
