#pragma once
// Where the steps of all ranks go: steps/rank-R.jsonl. Single owner thread.

#include <string>
#include <vector>

#include "agent/run/append_file.h"
#include "os/heartbeat.h"

namespace muster::agent {

class StepFiles {
 public:
  StepFiles(FileSystem& files, const std::string& folder, std::uint32_t ranks);

  /// Each rank's own in order; they wait for Write.
  void Add(Rank rank, const os::StepRecord& record);
  /// Behind the lines of another process of ours; records that it wrote are not written again.
  void GoOn();
  /// Writes what was added.
  void Write();
  /// Tries again what a full disk refused. True when every line is in its file.
  bool Flush();
  /// Bytes of step lines that are not in a file: dropped, or still waiting for room.
  std::uint64_t unwritten_bytes() const;

 private:
  std::vector<AppendFile> files_;
  std::vector<std::string> lines_;      ///< by rank, added and not written
  std::vector<std::string> paths_;      ///< by rank
  std::vector<std::uint64_t> written_;  ///< by rank: up to this record, by others
};

/// One line of steps/rank-R.jsonl, newline included.
std::string FormatStep(const os::StepRecord& record);

}  // namespace muster::agent
