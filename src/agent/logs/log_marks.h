#pragma once
// Writes the index beside one log file: when which bytes came (profile/logs/log_index.h). Never in
// the way of the log itself: what the disk has no room for is left out and nothing is said, since a
// reader does without. The writer thread's alone.

#include <string>

#include "agent/run/reopening_file.h"
#include "base/clock.h"
#include "profile/logs/log_index.h"

namespace muster::agent {

class LogMarks {
 public:
  LogMarks(FileSystem& files, std::string path) : file_(files, std::move(path), 0600, true) {}

  /// The bytes that are about to be written at `offset` came at `at`.
  void Add(Instant at, std::uint64_t offset);
  /// Writes the marks that are due, in front of their bytes: who follows the log then finds the
  /// time of what it finds.
  void Write();

 private:
  ReopeningFile file_;
  std::string torn_;  ///< the rest of a record whose front is in the file
  std::string due_;   ///< whole records
  bool any_ = false;
  profile::LogMark last_;
};

}  // namespace muster::agent
