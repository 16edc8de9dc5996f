#pragma once
// The files that a process has mapped, and names in them. One thread.

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "agent/stacks/take/held.h"
#include "base/fd.h"

namespace muster::agent::stacks {

inline constexpr const char* kVdso = "[vdso]";

/// A file that is mapped, from its first page on.
struct Library {
  Mapping first;
  std::uint64_t end = 0;
};
std::vector<Library> LibrariesOf(const std::vector<Mapping>& maps);

/// The file behind a mapping; where it was replaced, or is of another mount namespace, by way of
/// the process.
Fd OpenMapped(pid_t pid, const Mapping& map);

/// The address at which the library has the dynamic symbol; 0 without.
std::uint64_t FindSymbol(pid_t pid, const Library& library, std::string_view symbol);

std::string NameOfFile(const std::string& path);

/// A linker's name for people: "a::b(int) const" → "a::b", without template arguments.
std::string FunctionName(const char* symbol);

}  // namespace muster::agent::stacks
