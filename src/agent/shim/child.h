#pragma once
// What a fresh child does to become a worker, between clone and execve (shim) or main (zygote):
// own session, dies with the shim, may be traced by it, signals as a new program has them, its
// folder, its descriptors and no others. Called in the child only; libc only, no malloc.

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>

#include "agent/shim/command.h"

namespace muster::agent::shim {

struct ChildPlan {
  pid_t parent = 0;  ///< the shim; the child ends itself when that is not its parent any more
  std::uint32_t umask = 022;
  const int* fds = nullptr;  ///< become 0, 1, 2, 3, …; everything else is closed
  std::uint32_t fd_count = 0;
  const struct rlimit* nofile = nullptr;  ///< the limit to set; nullptr: leave it
};

/// A page that the shim shares with its children and copies: errno, by slot, of one that could not
/// become its program.
struct ErrorPage {
  int fd = -1;
  std::int32_t* errors = nullptr;  ///< of kMaxWorkers slots

  /// 0 or an errno value.
  int Make();
  /// Maps the page behind `shared`; `errors` stays nullptr when that fails.
  void Map(int shared);
  void Unmap();
};

/// 0, or the errno of the step that failed; the child must then leave by _exit.
int BecomeWorker(const ChildPlan& plan, const Command& command);

}  // namespace muster::agent::shim
