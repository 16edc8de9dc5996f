#pragma once
// The words of a shell script that is one simple command, as a container's ["bash", "-c", "exec
// torchrun … train.py"] often has it. Nothing runs: quotes, backslashes and the variables that are
// known are replaced; a script that does anything more is none of these. Internal to src/spec;
// pure.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::spec {

/// Nothing for a script with more than one command, redirections, substitutions, patterns or a
/// variable that `variables` has not. A leading `exec` is left away.
std::optional<std::vector<std::string>> SimpleCommand(
    std::string_view script, const std::map<std::string, std::string, std::less<>>& variables);

}  // namespace muster::spec
