#pragma once
// A LiveRun for people: the table of its ranks within the size of a terminal, and a line a rank
// where there is none. Lines are harmless to a terminal, without newlines, and no wider than asked
// for. Pure.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "profile/live/live_run.h"

namespace muster::profile {

struct TopLook {
  std::size_t columns = 0;             ///< 0: as wide as it gets
  std::size_t rows = 0;                ///< 0: as many as it takes
  std::optional<std::int64_t> now_ns;  ///< on the run's clock; nothing: on another host
};

/// What the run is, how its ranks stand, and the newest of what happened. Where the rows do not
/// hold a line a rank, ranks stand beside each other; where that is too much, those come first that
/// do not run or lag behind.
std::vector<std::string> TopLines(const LiveRun& run, const std::deque<Happening>& happened,
                                  const TopLook& look);
/// "rank 5 step 812, 41.2 ms a step, loss 0.4213, generation 2"
std::string RankLine(const LiveRun& run, std::uint32_t rank);
/// "2m 05s: rank 1 killed by SIGKILL at step 41"
std::string HappeningLine(const LiveRun& run, const Happening& happening);
/// The same as one JSON document.
std::string TopJson(const LiveRun& run, const std::deque<Happening>& happened);

}  // namespace muster::profile
