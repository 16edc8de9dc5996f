#pragma once
// The cgroup v2 folder that holds the workers of one job, below the shim's own: workers are cloned
// into its leaf, one write kills all of them and whatever they started. Works where the v2
// hierarchy is writable (pure or hybrid); otherwise `fd` stays −1 and the shim falls back to its
// own children. Libc only, no malloc.
//
// Each leaf is killed once and then replaced: a process that is cloned into a cgroup that was ever
// killed is killed at birth (Linux up to at least 6.18 compares kill_seq of the parent's cgroup
// with that of the target).

#include <cstddef>
#include <cstdint>

#include "agent/shim/protocol.h"

namespace muster::agent::shim {

/// Kills every process in the group at `path` and below it. False when the kernel refused.
bool KillCgroup(const char* path);
/// Removes the group at `path` with those that workers made below it, as far as they are empty.
/// True when it is gone.
bool RemoveCgroup(const char* path);

struct JobCgroup {
  int fd = -1;                     ///< the leaf
  int events_fd = -1;              ///< its cgroup.events: POLLPRI when "populated" changes
  char path[kMaxCgroupPath] = {};  ///< of the job's folder, above the leaf
  char leaf[kMaxCgroupPath + 16] = {};
  unsigned leaves = 0;

  /// Makes `<own cgroup>/muster-<id>` and a leaf. False when that is not possible here.
  bool Make(const char* id);
  bool Kill() const { return KillCgroup(leaf); }
  bool Populated() const;
  /// Processes in the leaf itself.
  std::uint32_t Count() const;
  /// After a kill: removes the empty leaf and makes the next. Without one the fd is −1.
  void Renew();
  /// Removes everything.
  void Remove();

 private:
  bool MakeLeaf();
  void RemoveLeaf();
};

}  // namespace muster::agent::shim
