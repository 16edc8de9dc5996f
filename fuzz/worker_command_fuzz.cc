// Any bytes as a worker's command (shim/command.h): what parses must consist of strings inside the
// bytes, in the number that the header says.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "agent/shim/command.h"

namespace shim = muster::agent::shim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly this size: a byte read behind it is caught by the sanitizer.
  std::vector<char> bytes(data, data + size);
  const std::size_t pointers = shim::CommandTableSize(bytes.data(), bytes.size());
  if (pointers == 0) return 0;
  std::vector<char*> table(pointers);
  shim::Command command;
  if (shim::ParseCommand(bytes.data(), bytes.size(), table.data(), table.size(), &command) != 0) {
    return 0;
  }
  std::size_t length = std::strlen(command.folder) + std::strlen(command.program) + 2;
  for (char** text = command.argv; *text != nullptr; ++text) length += std::strlen(*text) + 1;
  for (char** text = command.environ; *text != nullptr; ++text) length += std::strlen(*text) + 1;
  if (length + sizeof(shim::CommandHeader) != size) std::abort();
  return 0;
}
