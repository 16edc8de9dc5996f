#pragma once
// Reads one entry of spec.logRules, in our names or HyperPod's. Internal to src/spec.

#include <string>

#include "spec/log_rule.h"
#include "spec/object_reader.h"

namespace muster::spec {

LogRule ReadLogRule(const Value& value, const std::string& path, Findings& findings);

}  // namespace muster::spec
