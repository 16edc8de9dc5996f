#pragma once
// Where the threads of a Python process stand in its scripts, read from the interpreter's memory
// while the process is held: no signal, no handler, nothing of it has to run, so it works on one
// that is stopped or holds the interpreter's lock for ever. CPython 3.11 to 3.13, whose layouts
// were taken from their headers (include/internal/pycore_*.h); every code object's type is checked,
// so that an interpreter with another layout gives an explanation and no nonsense. One thread.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/stacks/stacks.h"
#include "agent/stacks/take/held.h"

namespace muster::agent::stacks {

struct PythonStacks {
  std::map<pid_t, std::vector<Frame>> frames;  ///< by tid; the innermost first
  std::string missing;                         ///< why there are none, or not all
};

/// Where the interpreter is in a process.
struct Interpreter {
  std::uint64_t runtime = 0;    ///< _PyRuntime
  std::uint64_t code_type = 0;  ///< PyCode_Type
  std::uint64_t version = 0;    ///< Py_Version
};

/// Nothing when the process is no Python. Before it is held: files are read.
std::optional<Interpreter> FindInterpreter(pid_t pid);

PythonStacks ReadPython(pid_t pid, const Interpreter& interpreter);

/// Line of the instruction at `offset` (bytes into the code) by a location table (PEP 626,
/// CPython's Objects/locations.md); 0: not known. Bad bytes give a wrong line, no more.
int LineOf(std::string_view table, int first_line, std::uint64_t offset);

}  // namespace muster::agent::stacks
