#pragma once
// The two readers behind ReadDocument, each in the one file that knows its library. They expect
// text that ReadDocument has checked for size and encoding. Internal to src/spec.

#include <string_view>

#include "spec/document.h"

namespace muster::spec {

Result<Value> ReadYaml(std::string_view text, std::string_view file, const DocumentLimits& limits);
Result<Value> ReadJson(std::string_view text, std::string_view file, const DocumentLimits& limits);

}  // namespace muster::spec
