#pragma once
// The features in dataset_info.json as Hugging Face datasets makes columns of them: what every
// version since 2.14 refuses. A kind of feature that is not known here is let pass. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/arrow/type.h"

namespace muster::data {

/// Adds a sentence for each thing that is wrong. `features` is an object; `schema` that of the
/// shards, null when it is not known.
void CheckFeatures(const nlohmann::json& features, const arrow::Schema* schema,
                   std::vector<std::string>& out);

}  // namespace muster::data
