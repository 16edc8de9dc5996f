#pragma once
// Which run is meant where none is named: the newest that goes on, else the newest. Looks at the
// run.json and the lock of the folders below one; changes nothing.

#include <string>

#include "base/result.h"

namespace muster::profile {

/// The folder, as `parent` joined with its name. NotFound: there is no run in `parent`.
Result<std::string> NewestRun(const std::string& parent);

}  // namespace muster::profile
