#pragma once
// Commands that start Python, and what a fork server for them is told: zygote/python_zygote.py.
// Pure but for the script's own text, which is looked at for its imports.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/result.h"

namespace muster::agent {

/// What a Python command runs.
struct PythonProgram {
  enum class Kind { kFile, kModule, kCode };
  Kind kind = Kind::kFile;
  std::size_t index = 0;  ///< of the script, the module's name or the code in the command's words
};

/// Nothing when the command is not Python, or has no program, or flags that a copy of a running
/// interpreter cannot honour (-i, -x, an unknown one): such a command is executed.
std::optional<PythonProgram> ParsePython(const std::vector<std::string>& command);

/// What is worth importing before the ranks are forked: "torch" when the program, or a module
/// beside it that it imports, imports torch or a library that does; nothing for any other, and for
/// a module that is not below `folder`, the working folder, or cannot be read.
std::vector<std::string> GuessPreload(FileSystem& files, const std::vector<std::string>& command,
                                      const PythonProgram& program, const std::string& folder);

/// Whether a copy can run it: a source. Of a folder, an archive (zipapp) or compiled code it
/// cannot; what is not there it tells as Python does. A relative path is below `folder`.
bool IsSource(FileSystem& files, const std::vector<std::string>& command,
              const PythonProgram& program, const std::string& folder);

/// NotFound when the script is not there: Python would say so from every rank. A relative path is
/// below `folder`.
Status CheckScript(FileSystem& files, const std::vector<std::string>& command,
                   const std::string& folder);

/// The argv of the fork server; its socket is descriptor 3.
std::vector<std::string> PythonZygote(const std::vector<std::string>& command,
                                      const PythonProgram& program,
                                      const std::vector<std::string>& modules);

}  // namespace muster::agent
