#pragma once
// What makes no sense in a log rule. Internal to src/spec; others call ValidateJob.

#include <functional>
#include <string>

#include "spec/log_rule.h"

namespace muster::spec {

/// `path` is the rule's, "spec.logRules[0]"; `fault` gets the path of each fault and its message.
void CheckLogRule(const LogRule& rule, const std::string& path,
                  const std::function<void(const std::string& path, std::string message)>& fault);

}  // namespace muster::spec
