#pragma once
// Why a worker could not be started, beyond what its errno says, and what to do about it: the
// kernel reports a missing interpreter as a missing file, and a limit of processes as a passing
// lack. And which Python it was that lacks a module. Looks at the program's first bytes and at our
// limits; changes nothing.

#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

/// "" when the errno says it all. `program` is an absolute path.
std::string StartAdvice(const std::string& program, int start_error);

/// Of a Python `command` that ended with `words` because a module is missing: which Python
/// `program` was, for its own traceback does not tell. "" for every other end.
std::string ModuleAdvice(const std::vector<std::string>& command, const std::string& program,
                         std::string_view words);

/// "ulimit -n 1024 (open files)", for messages.
std::string DescriptorLimit();
/// "ulimit -u 4096 (processes)".
std::string ProcessLimit();

}  // namespace muster::agent
