#pragma once
// What a pack may put away: an old dataset, and nothing that its owner would miss. A folder counts
// as one only when it holds what a dataset holds and nothing else, so that neither a project that
// happens to have a state.json nor notes kept inside a set are ever removed with it.

#include <string>

#include "base/file_system.h"
#include "base/result.h"

namespace muster::data {

/// Precondition, naming what would be lost, unless `folder` is empty or a dataset and no more.
Status CheckReplaceable(FileSystem& files, const std::string& folder);

/// The same for a folder in which a pack was building, finished or not.
Status CheckLeftover(FileSystem& files, const std::string& folder);

/// Invalid when one of the two is, or lies in, the other, links followed: a pack would remove what
/// it reads, or the next one would read what it wrote. `output` need not exist.
Status CheckApart(const std::string& input, const std::string& output);

}  // namespace muster::data
