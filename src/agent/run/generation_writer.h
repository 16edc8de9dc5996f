#pragma once
// Puts generation numbers on disk from a thread of its own: an fsync takes as long as stopping the
// workers does, and on a dead file system it never ends, which must not stop whoever steers the
// run. Owner: the run loop's thread.

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/result.h"
#include "base/strong_id.h"

namespace muster::agent {

class GenerationWriter {
 public:
  /// Called from the writer's thread, not after Stop began.
  using OnWritten = std::function<void(Generation, Status)>;

  /// `folder` is that of the run; `files` outlives every write, one that hangs too. Exhausted when
  /// its thread cannot be started.
  static Result<std::unique_ptr<GenerationWriter>> Start(FileSystem& files, std::string folder,
                                                         OnWritten on_written);
  ~GenerationWriter();
  GenerationWriter(const GenerationWriter&) = delete;
  GenerationWriter& operator=(const GenerationWriter&) = delete;

  /// Behind those that were asked for before.
  void Write(Generation generation);
  /// False when a write does not come back within `limit`: the program must then end by _exit.
  /// Further calls say the same.
  bool Stop(std::chrono::nanoseconds limit);

 private:
  struct Shared;
  explicit GenerationWriter(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<Shared> shared_;  ///< the thread's too
};

}  // namespace muster::agent
