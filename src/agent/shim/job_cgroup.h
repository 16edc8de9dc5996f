#pragma once
// The cgroup v2 folder that holds the workers of one job, below the shim's own: made once, workers
// are cloned into it, one write kills all of them and whatever they started. Works where the v2
// hierarchy is writable (pure or hybrid); otherwise `fd` stays −1 and the shim falls back to its
// own children. Libc only, no malloc.

#include <cstddef>

namespace muster::agent::shim {

struct JobCgroup {
  int fd = -1;         ///< the folder
  int events_fd = -1;  ///< cgroup.events: POLLPRI when "populated" changes
  char path[256] = {};

  /// Makes `<own cgroup>/muster-<id>`. False when that is not possible here.
  bool Make(const char* id);
  /// Kills every process in it. False when the kernel lacks cgroup.kill (before 5.14).
  bool Kill() const;
  bool Populated() const;
  /// Removes the empty folder.
  void Remove();
};

}  // namespace muster::agent::shim
