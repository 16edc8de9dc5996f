#pragma once
// What a folder is that holds no run, by the names in it, and the command that tells of it: a
// checkpoint, checkpoints, a dataset, runs, or a run that did not begin. Reads at most a few names
// and first bytes; changes nothing.

#include <string>

#include "profile/report/run_files.h"

namespace muster::profile {

/// "it is a checkpoint: muster ckpt show c/step-000000000003", for a hint.
std::string WhatElse(const RunFiles& files);

}  // namespace muster::profile
