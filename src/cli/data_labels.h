#pragma once
// The names of classes as a user gives them: a list on the command line, or a file with one a line.
// Either is somebody's own words, so what is wrong with them is Invalid and names the place. Pure
// but for the file.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::cli {

/// `list`: "a,b,c"; `file`: its path, empty for none. Neither gives no names.
Result<std::vector<std::string>> LabelNames(const std::optional<std::string>& list,
                                            const std::string& file);

}  // namespace muster::cli
