#pragma once
// What of a run is in storage, by the folder of checkpoints itself: a rank that is killed between a
// commit and its next sign of life can tell nobody of it. What was not there before the first
// worker is this run's. Each look is on a thread of its own, because a folder on a dead file server
// hangs whoever opens it. Owner: the run's main thread.

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/file_system.h"

namespace muster::agent {

class CommittedSteps {
 public:
  /// `folder`: absolute, "" when nothing is saved. Looks for the first time, at most `limit`.
  CommittedSteps(FileSystem& files, std::string folder, std::chrono::nanoseconds limit);

  /// The newest step that was committed since then and whose files are all there; nothing when
  /// there is none, or a look took longer than its limit.
  std::optional<std::uint64_t> Newest(std::chrono::nanoseconds limit);

  /// A look hangs in the kernel, and with it a thread that still uses the files.
  bool hangs() const { return hangs_; }

 private:
  FileSystem& files_;
  const std::string folder_;
  std::optional<std::set<std::uint64_t>> before_;
  bool hangs_ = false;
};

}  // namespace muster::agent
