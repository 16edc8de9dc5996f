#pragma once
// The features in dataset_info.json as Hugging Face datasets makes columns of them: what every
// version since 2.14 refuses. Where versions differ (a Sequence of a dict of lists), nothing is
// said. Source: generate_from_dict, get_nested_type and reorder_fields_as in
// datasets/features/features.py. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/arrow/type.h"

namespace muster::data {

/// Adds a sentence for each thing that is wrong. `features` is an object; `schema` that of the
/// shards, null when it is not known.
void CheckFeatures(const std::string& key, const nlohmann::json& features,
                   const arrow::Schema* schema, std::vector<std::string>& out);

}  // namespace muster::data
