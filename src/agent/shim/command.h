#pragma once
// What a process is to run, as bytes in a sealed memfd: working folder, program, arguments,
// environment. Written by the controller (EncodeCommand in launch/command_writer.h), read in the
// child between clone and execve (or main), where nothing may be allocated by malloc: libc only.
//
// Layout (docs/formats/shim-protocol.md): CommandHeader, then NUL-terminated strings in the order
// folder, program, argv[argc], environ[envc], `bytes` of them in total.

#include <cstddef>
#include <cstdint>

namespace muster::agent::shim {

struct CommandHeader {
  std::uint32_t magic;  ///< kCommandMagic
  std::uint32_t version;
  std::uint32_t argc;
  std::uint32_t envc;
  std::uint64_t bytes;
};
inline constexpr std::uint32_t kCommandMagic = 0x31444d43;  // "CMD1"
inline constexpr std::uint32_t kMaxStrings = 1u << 16;
inline constexpr std::uint64_t kMaxCommandBytes = 8u << 20;

/// Pointers into a mapping that lives as long as the process. argv and environ end with nullptr.
struct Command {
  const char* folder = nullptr;
  const char* program = nullptr;
  char** argv = nullptr;
  char** environ = nullptr;
  std::uint32_t argc = 0;
};

/// Checks `size` bytes at `data` and fills `out`; `table` has room for argc + envc + 2 pointers
/// (CommandTableSize). 0, or EINVAL when the bytes are not a command.
int ParseCommand(char* data, std::size_t size, char** table, std::size_t table_size, Command* out);
/// Pointers needed for the header at `data`, or 0 when it is not one.
std::size_t CommandTableSize(const char* data, std::size_t size);

/// Maps the memfd privately and parses it. 0 or an errno value.
int MapCommand(int fd, Command* out);

}  // namespace muster::agent::shim
