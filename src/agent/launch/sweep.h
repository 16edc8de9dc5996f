#pragma once
// After the death of the shim itself: its workers die with it (PDEATHSIG), but what they started in
// the background does not. It is in the job's cgroup, or a child of ours then, because a `muster
// run` is a subreaper; of a shim that an earlier process of ours had started it is a child of our
// supervisor, as that shim was.

#include <string>
#include <vector>

namespace muster::agent {

/// Whom the processes of a job may be children of, and which of those are not of the job.
struct Orphanage {
  int supervisor = 0;          ///< the parent of this process, whose children count too; 0: none
  std::vector<int> strangers;  ///< of either
  std::string mark;            ///< "NAME=value" in the environment of others; "": there are none
};

struct Child {
  int pid = 0;
  bool dead = false;  ///< and waits for its parent
};
/// Those that `parent` has now.
std::vector<Child> ChildrenOf(int parent);

/// Kills everything of the job, until nothing is left of it. `cgroup` is the folder that the shim
/// named, or empty. Takes at most 5 s; false when something is left even then.
bool SweepAfterShim(const std::string& cgroup, const Orphanage& orphanage = {});

}  // namespace muster::agent
