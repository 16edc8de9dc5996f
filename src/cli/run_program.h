#pragma once
// Which program a run executes: the words of a script, module or command made into a command line,
// and the file behind its first word. Looks at PATH, VIRTUAL_ENV and the files, changes nothing.

#include <string>
#include <vector>

#include "base/result.h"
#include "spec/torchrun/settings.h"

namespace muster::cli {

/// Whether it is muster-train, by its name.
bool IsTrainer(const std::string& program);

/// "python3 -u train.py --lr 1" → "train", "./a.out" → "a".
std::string NameOfCommand(const std::vector<std::string>& command);

/// The absolute path of `name`; muster-train is looked for in `folder`, that of muster, first.
Result<std::string> FindCommand(const std::string& name, const std::string& folder);

/// `words` as torchrun runs them, python -u before a script. What Python cannot run (a program
/// somewhere in PATH, a binary, a shell script) is run as it stands. NotFound when there is none.
Result<std::vector<std::string>> CommandFor(const std::vector<std::string>& words,
                                            const spec::torchrun::Settings& torchrun,
                                            const std::string& folder);

}  // namespace muster::cli
