#pragma once
// The JSON files of one split, which no checksum covers, held against what its manifest and its
// shards say, or against what Hugging Face datasets needs where there is no manifest (hf_check.h).

#include "data/layout/split_folder.h"
#include "data/verify/verify.h"

namespace muster::data {

/// Adds a damage for each key that is wrong; a file that the split's own findings name already is
/// not looked at again.
void CheckHfFiles(const SplitFolder& split, VerifyReport& report);

}  // namespace muster::data
