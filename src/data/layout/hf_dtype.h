#pragma once
// The Arrow type that Hugging Face datasets makes of a dtype's name ("int64", "timestamp[us]").
// Source: string_to_arrow in datasets/features/features.py, 3.6 and 5.2. Pure.

#include <optional>
#include <string>

#include "data/arrow/type.h"

namespace muster::data {

/// A type without a name of its own; one that no shard which we read can hold is an extension of
/// that name. None: HF knows no such dtype.
std::optional<arrow::Field> TypeOfDtype(const std::string& dtype);

}  // namespace muster::data
