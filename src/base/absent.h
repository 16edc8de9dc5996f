#pragma once
// What is said of a path that a user named and that is not there, the same everywhere: what was
// looked for, its absolute path (a relative one hides the usual mistake, the wrong folder), what
// beside it is called nearly so, and what to do. Looks at the folders of the path; any thread.

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

/// Absolute, without "." and "a/.."; `path` itself where the working folder is gone.
std::string AbsolutePath(const std::string& path);

/// NotFound: "there is no run folder at /data/runs/x", with ": did you mean y?" where there is a y
/// in /data/runs; where that is absent too, ", of that only /data exists".
Error Absent(std::string_view what, const std::string& path, std::string_view hint);

}  // namespace muster
