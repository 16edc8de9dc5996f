#pragma once
// Output that could not be kept, and why. Values; LossTotals has a single owner thread.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "agent/logs/log_id.h"

namespace muster::agent {

enum class WhyLost {
  kTooFast,  ///< it came faster than it could be written
  kNoRoom,   ///< the disk had no room
  kFailed,   ///< the disk, or the folder, did not take it
};
std::string_view NameOf(WhyLost why);  ///< "too fast", "no room", "failed"

/// Bytes that could not be kept since the last time.
struct LogLoss {
  LogId id;
  std::uint64_t bytes = 0;
  WhyLost why = WhyLost::kTooFast;
};

/// Of a whole run.
class LossTotals {
 public:
  void Add(const LogLoss& loss);
  /// A sentence for each stream and reason, at most a few and how many more there are.
  std::vector<std::string> InWords() const;

 private:
  std::map<std::tuple<Rank, Stream, WhyLost>, std::uint64_t> bytes_;
};

}  // namespace muster::agent
