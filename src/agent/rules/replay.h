#pragma once
// Log rules on logs that are over: when each would have fired, by the time stamps that lines begin
// with (line_time.h). The same engine as in a run. A generation begins with its first stamp.
// Without stamps nothing is late: matches and values are judged, silences are not. Pure; one call.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/logs/log_id.h"
#include "agent/rules/engine.h"
#include "agent/rules/line_time.h"

namespace muster::agent::rules {

struct OldLog {
  LogId id;
  std::string name;  ///< for people
  std::string_view text;
};

/// Rank, generation and stream of a path as in a run folder: ".../rank-3/gen-2.stderr.log"; of
/// another file rank 0, generation 1, stdout.
LogId IdOfPath(std::string_view path);

struct OldFiring {
  Firing firing;
  std::string log;         ///< whose line it was
  std::uint64_t line = 0;  ///< 1, 2, …; of a silence the one that came too late; 0: none came
  bool silence = false;
};

struct Replayed {
  std::vector<OldFiring> firings;
  std::vector<std::uint64_t> matches;  ///< by rule, of every generation
  std::uint64_t lines = 0;
  std::optional<LineTimeKind> kind;  ///< of the stamps; nothing: there are none
  std::optional<std::chrono::nanoseconds> first, last;
};

/// Invalid for a pattern that RE2 does not take, and for logs with different kinds of stamps.
Result<Replayed> Replay(const std::vector<spec::LogRule>& rules, const std::vector<OldLog>& logs);

}  // namespace muster::agent::rules
