#pragma once
// How many processes the kernel's OOM killer ended in the control group of this process: the one
// thing that tells such a death from any other SIGKILL. The kernel counts a victim in its own group
// whatever ran out, that group, one above it or the machine; under cgroup v2 in all groups above,
// too. Any thread.

#include <cstdint>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace muster::os {

class OomCount {
 public:
  /// Of the group with a memory controller: v1's `memory.oom_control`, or v2's `memory.events`.
  /// NotFound where none counts (Linux before 4.13, no memory controller, no /sys/fs/cgroup).
  static Result<OomCount> Open(const std::string& mounts = "/sys/fs/cgroup",
                               const std::string& groups = "/proc/self/cgroup");
  /// Since the group was made. One read of a file that stays open.
  Result<std::uint64_t> Read() const;

 private:
  OomCount(std::string path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  Fd file_;
};

}  // namespace muster::os
