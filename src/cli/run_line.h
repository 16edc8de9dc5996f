#pragma once
// The command line of `muster run` before CLI11 sees it: torchrun's flags are taken out, and what
// is to be run is put behind "--", so that a script's own options are its own.

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/run_flags.h"
#include "cli/verb.h"

namespace muster::cli {

/// The words behind `muster run`, from another place than this program's command line.
Result<RunFlags> ReadRunWords(const std::vector<std::string>& words);

/// `words` as typed, without the program's name. Those of another verb come back as they are; those
/// of `run` without torchrun's flags, which are in `invocation.line`. Invalid where they are those
/// of `run` without its name.
Result<std::vector<std::string>> TakeRunLine(const CLI::App& app, std::vector<std::string> words,
                                             Invocation& invocation);

}  // namespace muster::cli
