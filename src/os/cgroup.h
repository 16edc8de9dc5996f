#pragma once
// A cgroup v2 group of our own: whatever a worker forks stays in it, so that the end of a job can
// take everything, and only it, in one write (cgroup.kill, Linux 5.14). Works where the unified
// hierarchy is mounted, alone or hybrid (/sys/fs/cgroup/unified), and where we may make folders
// next to our own group; elsewhere Find… says nothing and the caller does without. No controllers
// are switched on. Single owner thread.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace muster::os {

/// The mount point of cgroup v2 in the text of /proc/self/mountinfo.
std::optional<std::string> ParseCgroupMount(std::string_view mountinfo);
/// Our group's path in the text of /proc/self/cgroup ("0::/path").
std::optional<std::string> ParseOwnCgroup(std::string_view cgroup);

/// The folder of our own group when we may make groups in it; nothing when there is no cgroup v2 or
/// no right to.
std::optional<std::string> FindWritableCgroup();

class Cgroup {
 public:
  /// Makes the group `name` in the folder `parent`. AlreadyExists when it is there.
  static Result<Cgroup> Create(const std::string& parent, const std::string& name);

  int fd() const { return folder_.get(); }  ///< for SpawnOptions::cgroup_fd
  const std::string& path() const { return path_; }

  /// Asks the kernel to stop or resume every process; it is done soon after.
  Status Freeze(bool frozen);
  /// SIGKILL to every process in it and below, forks in flight included; frozen ones too.
  Status Kill();
  /// Processes directly in the group.
  Result<std::vector<pid_t>> Pids() const;
  Result<bool> Populated() const;
  /// Waits until no live process is left; false when `timeout` ran out. A zombie does not count.
  Result<bool> WaitEmpty(std::chrono::nanoseconds timeout) const;
  /// Removes the group and the groups that its processes made below. Conflict while one is
  /// populated.
  Status Remove();

 private:
  Cgroup(Fd folder, std::string path) : folder_(std::move(folder)), path_(std::move(path)) {}
  Fd folder_;
  std::string path_;
};

}  // namespace muster::os
