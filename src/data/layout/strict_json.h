#pragma once
// JSON of which every reader has to see the same: what Python's json module and ours read in
// different ways is refused (a key that stands twice, a byte order mark, NaN, text that is not
// UTF-8). Only for the files of this folder that include nlohmann/json anyway. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::data {

/// An object, nested at most 64 deep; DataLoss, without the file's name, for anything else.
Result<nlohmann::json> ParseStrictly(std::string_view text);
/// Escapes of lone surrogates ("\ud800"), which Python writes and reads and our parser refuses, as
/// "\ufffd"; everything else as it is.
std::string WithoutLoneSurrogates(std::string_view text);
/// A value as a message shows it, at most 60 bytes.
std::string ShownJson(const nlohmann::json& value);

}  // namespace muster::data
