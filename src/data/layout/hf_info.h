#pragma once
// The keys of dataset_info.json, beside features and free texts, from which Hugging Face datasets
// makes something when it opens a set: version, splits, supervised_keys, post_processed. Refused is
// what every version since 2.14 refuses. Source: DatasetInfo.__post_init__ in datasets/info.py,
// SplitDict.from_split_dict in splits.py, Version in utils/version.py. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace muster::data {

/// Adds a sentence for each thing that is wrong. `info` is an object.
void CheckOtherInfo(const nlohmann::json& info, std::vector<std::string>& out);

}  // namespace muster::data
