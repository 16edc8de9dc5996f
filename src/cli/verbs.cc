// The list of verbs, in the order of the help. Each AddXxx is in the file of its name.
#include "cli/verb.h"

namespace muster::cli {

void AddVerbs([[maybe_unused]] CLI::App& app, [[maybe_unused]] Invocation& invocation) {}

}  // namespace muster::cli
