#include "agent/launch/command_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "agent/shim/command.h"
#include "os/memfd.h"

namespace muster::agent {
namespace {

Status AppendString(std::string& out, const std::string& text) {
  if (text.find('\0') != std::string::npos) {
    return Error(Code::kInvalid, "an argument or environment variable holds a NUL byte");
  }
  out += text;
  out += '\0';
  return Ok();
}

}  // namespace

Result<std::string> EncodeCommand(const CommandLine& command) {
  std::string strings;
  MUSTER_TRY(AppendString(strings, command.folder));
  MUSTER_TRY(AppendString(strings, command.program));
  for (const std::string& text : command.arguments) MUSTER_TRY(AppendString(strings, text));
  for (const std::string& text : command.environment) MUSTER_TRY(AppendString(strings, text));
  if (command.arguments.size() > shim::kMaxStrings ||
      command.environment.size() > shim::kMaxStrings ||
      strings.size() + sizeof(shim::CommandHeader) > shim::kMaxCommandBytes) {
    return Error(Code::kInvalid,
                 fmt::format("the command and its environment take {} in {} strings; at most 8 MiB "
                             "in 65536 are possible",
                             FormatBytes({static_cast<std::int64_t>(strings.size())}),
                             command.arguments.size() + command.environment.size()));
  }
  const shim::CommandHeader header{
      .magic = shim::kCommandMagic,
      .version = 1,
      .argc = static_cast<std::uint32_t>(command.arguments.size()),
      .envc = static_cast<std::uint32_t>(command.environment.size()),
      .bytes = strings.size(),
  };
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + strings;
}

Result<Fd> WriteCommand(const CommandLine& command) {
  const std::string bytes = MUSTER_TRY(EncodeCommand(command));
  Fd fd = MUSTER_TRY(os::CreateMemfd("muster-command", {static_cast<std::int64_t>(bytes.size())}));
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = ::pwrite(fd.get(), bytes.data() + written, bytes.size() - written,
                               static_cast<off_t>(written));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ErrnoError("write a worker's command", errno);
    written += static_cast<std::size_t>(n);
  }
  return fd;
}

}  // namespace muster::agent
