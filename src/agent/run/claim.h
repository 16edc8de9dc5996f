#pragma once
// Taking a folder that a user named for a run. Only one that is ours to write into is taken: new,
// empty, or left by a run of ours that never began, which its lock tells, not the names of its
// files. Everything else in it belongs to somebody and stands untouched. Owner: the run's main
// thread.

#include <string>

#include "base/fd.h"
#include "base/file_system.h"
#include "base/result.h"

namespace muster::agent {

struct NamedFolder {
  std::string given;     ///< as the user wrote it
  std::string absolute;  ///< the same, without links; it exists
};

/// The held lock, with `facts` (what run.json is to hold) and the sum of `job_yaml` in it. Conflict
/// when another run holds it, AlreadyExists when the folder holds an earlier run or anything that
/// is not a left-over of ours; nothing was changed then.
Result<Fd> ClaimFolder(FileSystem& files, const NamedFolder& folder, const std::string& facts,
                       const std::string& job_yaml);

}  // namespace muster::agent
