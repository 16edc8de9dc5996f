#pragma once
// Holds a run's own record, events.jsonl, against the truth: every fault that it tells of must have
// happened, in that generation or to an older process that it speaks of. So a report of the past
// that was acted upon shows.

#include <string>

#include "agent/simulation/truth.h"
#include "base/file_system.h"

namespace muster::agent::simulation {

struct RecordCheck {
  bool rough = false;        ///< the network may have cost any agent its place
  bool starts_fail = false;  ///< or a rank its start
};

void CheckRecord(FileSystem& files, const std::string& path, const Truth& truth,
                 const RecordCheck& what, World& world);

}  // namespace muster::agent::simulation
