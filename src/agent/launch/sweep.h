#pragma once
// After the death of the shim itself: its workers die with it (PDEATHSIG), but what they started in
// the background does not. It is a child of ours then, because a `muster run` is a subreaper, or in
// the job's cgroup. Only for a process whose children are all of the job: everything is killed.

#include <string>

namespace muster::agent {

/// `cgroup` is the folder that the shim named, or empty. Takes at most 5 s; false when something is
/// left even then.
bool SweepAfterShim(const std::string& cgroup);

}  // namespace muster::agent
