#pragma once
// Which rows of a dataset the recipe learns and which it scores, and whether they fit the model:
// what a training would end in is found before its first step. Errors name file, batch and row and
// are never Invalid, for other flags would not mend what a file holds.

#include <string>

#include "data/decode/image.h"
#include "train/task.h"
#include "train/trainer.h"

namespace muster::recipes {

/// `eval_split` empty: test, or validation where there is no test, or none.
Result<train::Splits> OpenSplits(const std::string& path, const std::string& eval_split);

/// Size and channels of the first image, which count for all.
Result<data::ImageShape> ImageOf(const data::Dataset& dataset);

struct SplitChecks {
  data::Colour colour = data::Colour::kSame;
  /// Looks at the images' headers, too: at all of them, or in a large set at some 256 MiB of them,
  /// evenly spread. Who has done a step of them need not do it once more.
  bool every_image = true;
};

/// Two classes at least, the same ones in both splits, labels to score, one size.
Status CheckSplits(const train::Splits& splits, const data::ImageShape& image,
                   const SplitChecks& checks);

}  // namespace muster::recipes
