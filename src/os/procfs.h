#pragma once
// What /proc says about a process. The parsers are pure and take hostile text: a process chooses
// its own name, which may hold spaces, brackets and newlines. A pid can be reused between two
// reads, so what acts on a process holds a pidfd and compares `start_ticks`. Values, any thread.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::os {

/// From /proc/PID/stat, proc(5).
struct ProcessStat {
  pid_t pid = 0;
  std::string name;  ///< at most 15 bytes, as the process wrote it
  char state = '?';  ///< R S D T t Z X I …
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  std::uint64_t user_ticks = 0;  ///< CPU time in clock ticks
  std::uint64_t system_ticks = 0;
  std::uint64_t threads = 0;
  std::uint64_t start_ticks = 0;  ///< since boot; with the pid it names one process for ever
};
/// DataLoss when the text is not a stat line.
Result<ProcessStat> ParseProcessStat(std::string_view text);
/// NotFound when there is no such process.
Result<ProcessStat> ReadProcessStat(pid_t pid);

/// From /proc/PID/status: masks with bit (n − 1) for signal n.
struct ProcessSignals {
  std::uint64_t blocked = 0;
  std::uint64_t ignored = 0;
  std::uint64_t caught = 0;
  pid_t tracer = 0;  ///< 0: nobody traces it
  bool Catches(int signal) const {
    return signal >= 1 && signal <= 64 && (caught >> (signal - 1) & 1) != 0;
  }
};
Result<ProcessSignals> ParseProcessSignals(std::string_view text);
Result<ProcessSignals> ReadProcessSignals(pid_t pid);

/// The children of every thread of `pid`, ascending. A snapshot: they may be gone already.
Result<std::vector<pid_t>> ReadChildren(pid_t pid);

/// The threads of this process.
Result<std::size_t> CountThreads();

}  // namespace muster::os
