#pragma once
// Puts generation numbers on disk from a thread of its own: an fsync takes as long as stopping the
// workers does, and on a dead file system it never ends, which must not stop whoever steers the
// run. A simulation writes with a delay of its own. Owner: the run loop's thread.

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
  GenerationWriter() = default;
  virtual ~GenerationWriter() = default;
  GenerationWriter(const GenerationWriter&) = delete;
  GenerationWriter& operator=(const GenerationWriter&) = delete;

  /// Behind those that were asked for before.
  virtual void Write(Generation generation) = 0;
  /// False when a write does not come back within `limit`: the program must then end by _exit.
  /// Further calls say the same.
  virtual bool Stop(std::chrono::nanoseconds limit) = 0;
};

}  // namespace muster::agent
