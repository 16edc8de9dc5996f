#pragma once
// What the numbers of the recipe's command line may be. They are checked before anything is opened,
// so that a slip of the finger costs a second and not a run.

#include "base/result.h"
#include "vit/flags.h"

namespace muster::recipes {

/// Invalid, naming the first flag out of its range, the range and the value.
Status CheckRanges(const VitFlags& flags);

}  // namespace muster::recipes
