#pragma once
// Reads one log forward in lines, with their times, from any place on, while it may still grow. A
// line ends at LF, CR LF, or a CR alone (a progress bar), and is given with its end, byte for byte;
// one above 64 KiB comes in pieces. At most one chunk and one piece are in memory. A file that
// cannot be read (any more) is at its end. One thread; copies read on by themselves.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "profile/logs/log_list.h"
#include "profile/logs/log_times.h"

namespace muster::profile {

inline constexpr std::size_t kMaxLogPiece = 64 << 10;

/// A line, or a piece of a long one.
struct LogPiece {
  LogName name;
  std::optional<std::int64_t> t_ns;  ///< when the line began to come; nothing: not known
  std::string_view text;             ///< with its end; valid until the cursor moves
  bool begins = true;
  bool ends = true;
};

/// Without what ends it.
std::string_view WithoutEnd(std::string_view line);

class LogCursor {
 public:
  LogCursor(const RunFiles& files, const LogName& name, Bytes chunk);

  /// The next piece, or nothing when no whole line is left. With `to_end` what is left without an
  /// end is a line too. The same until Pop.
  std::optional<LogPiece> Front(bool to_end);
  void Pop();
  /// The time of what comes next, as far as that is known without reading it: for merging.
  std::int64_t NextTime();

  /// Nothing behind `size` is read until LiftLimit.
  void Limit(std::uint64_t size) { limit_ = size; }
  void LiftLimit() { limit_ = std::numeric_limits<std::uint64_t>::max(); }
  bool HasTimes() const { return times_.exists(); }
  /// Goes to the first line that came at `t_ns` or later; of what has no times, to the first.
  void SeekTime(std::int64_t t_ns);
  /// Goes to `offset`, where a line begins.
  void SeekLine(std::uint64_t offset);
  /// Goes to the last `most` lines of those that are left up to the limit, and says how many they
  /// are. With `to_end` an unfinished last line counts.
  std::uint64_t SeekLast(std::uint64_t most, bool to_end);

 private:
  std::string_view held() const { return std::string_view(buffer_).substr(begin_); }
  struct LastLines {
    std::uint64_t offset = 0;
    std::uint64_t lines = 0;
  };
  LastLines FindLast(std::uint64_t most, bool to_end) const;
  bool Fill();
  /// Sets front_ to the length of the next piece; false when there is none.
  bool Measure(bool to_end);
  /// The length of the next line or piece in what is held; 0: more is needed.
  std::size_t PieceLength(bool to_end) const;

  const RunFiles* files_;
  LogName name_;
  std::string path_;
  Bytes chunk_;
  LogTimes times_;
  std::uint64_t limit_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t offset_ = 0;  ///< of what comes next
  std::string buffer_;        ///< from `begin_` on: what was read from `offset_` on
  std::size_t begin_ = 0;
  std::size_t front_ = 0;  ///< length of what Front gave
  bool inside_ = false;    ///< the next piece goes on with a line
  bool skipping_ = false;  ///< that line is left out
  bool primed_ = false;    ///< the marks at `offset_` are loaded
  std::optional<std::int64_t> line_time_;
};

}  // namespace muster::profile
