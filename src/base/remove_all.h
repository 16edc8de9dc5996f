#pragma once
// Removing a whole folder that somebody hostile may have filled: links are removed and never
// followed, and a tree of any depth costs a bounded number of descriptors and stack frames, because
// what lies too deep is first moved up. Internal to base; callers use FileSystem::RemoveAll.

#include <string>

#include "base/result.h"

namespace muster {

/// Absent is fine. Invalid for "", "/", "." and "..".
Status RemoveTree(const std::string& path);

}  // namespace muster
