#pragma once
// Packs what a process is to run into a sealed memfd (shim/command.h has the layout). It may hold
// secrets of the environment, so it goes by descriptor and has no name. Any thread.

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace muster::agent {

struct CommandLine {
  std::string folder;                  ///< working folder
  std::string program;                 ///< absolute path
  std::vector<std::string> arguments;  ///< argv, its first included
  std::vector<std::string> environment;
};

/// The bytes. Invalid when an argument holds a NUL or the whole is larger than 8 MiB.
Result<std::string> EncodeCommand(const CommandLine& command);
Result<Fd> WriteCommand(const CommandLine& command);

}  // namespace muster::agent
