#pragma once
// Whether Hugging Face datasets (2.14 to 5.x) opens the JSON files of a folder, and reads from them
// what the shards hold. No digest covers these files, as a person may edit the free texts in them.
// Of a set that a pack of ours wrote every key must have the value that the pack would write; of
// any other set only what every version of load_from_disk needs is asked for, so that no set which
// it opens is called damaged. Values are compared as JSON, bytes are not.
//
// Each function returns what is wrong, one sentence a key, none when nothing is. Pure; any thread.

#include <string>
#include <string_view>
#include <vector>

#include "data/arrow/type.h"
#include "data/layout/manifest.h"

namespace muster::data {

/// What a reader of a split's JSON can hold against it.
struct HfTruth {
  const Manifest* manifest = nullptr;  ///< of a pack of ours; null: there is none
  /// Of the shards; null: of none is it known that it is right.
  const arrow::Schema* schema = nullptr;
};

std::vector<std::string> CheckStateJson(std::string_view text, const HfTruth& truth);
std::vector<std::string> CheckDatasetInfoJson(std::string_view text, const HfTruth& truth);
std::vector<std::string> CheckDatasetDictJson(std::string_view text);

/// Whether HF takes it for a split: words of letters, digits and "_" with single dots between them.
bool IsHfSplitName(std::string_view name);

}  // namespace muster::data
