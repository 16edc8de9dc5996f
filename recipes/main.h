#pragma once
// The program muster-train as a function, so that the zygote can call it in a forked child as main
// calls it: `muster-train RECIPE [flags]`. Values come from the flags, what the host gives a worker
// from `env` (spec/env.h); without it the process is rank 0 of 1 and works by hand.

#include <string>
#include <vector>

#include "spec/env.h"

namespace muster::recipes {

/// `args` without the program's name. Returns the exit code; prints its error on stderr.
int TrainMain(const std::vector<std::string>& args, const spec::EnvLookup& env);

/// Pays first-use costs of libtorch and MKL with one small forward, backward and update, so that
/// forked children need not. Single-threaded, and the process stays so. Returns an exit code.
int WarmUp();

}  // namespace muster::recipes
