#include "agent/launch/start_advice.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "base/durable.h"
#include "base/fd.h"

namespace muster::agent {
namespace {

std::string LimitText(const char* flag, __rlimit_resource resource, const char* what) {
  struct rlimit limit{};
  ::getrlimit(resource, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return fmt::format("ulimit {} unlimited ({})", flag, what);
  return fmt::format("ulimit {} {} ({})", flag, limit.rlim_cur, what);
}

/// The path after "#!", or "" of what is not a script.
std::string InterpreterOf(const std::string& program) {
  const Fd fd(::open(program.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 256> bytes{};
  const ssize_t n = ::pread(fd.get(), bytes.data(), bytes.size(), 0);
  const std::string_view head(bytes.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  if (!head.starts_with("#!")) return {};
  const std::size_t begin = head.find_first_not_of(" \t", 2);
  if (begin == std::string_view::npos) return {};
  const std::size_t end = std::min(head.find_first_of(" \t\r\n", begin), head.size());
  return std::string(head.substr(begin, end - begin));
}

std::string MissingFile(const std::string& program) {
  if (::access(program.c_str(), F_OK) != 0) return program + " is gone";
  const std::string interpreter = InterpreterOf(program);
  if (!interpreter.empty() && ::access(interpreter.c_str(), F_OK) != 0) {
    return fmt::format("{} exists, but its interpreter {} does not: correct its #! line", program,
                       interpreter);
  }
  std::error_code error;
  static_cast<void>(std::filesystem::current_path(error));
  if (error) return "the working folder is gone: start the run from one that exists";
  return program + " exists, but a loader or library that it names does not";
}

std::string Denied(const std::string& program) {
  const std::string interpreter = InterpreterOf(program);
  if (interpreter.empty() || ::access(program.c_str(), X_OK) != 0) return {};
  return fmt::format("{} names {} as its interpreter, which is not an executable file", program,
                     interpreter);
}

}  // namespace

std::string ModuleAdvice(const std::vector<std::string>& command, const std::string& program,
                         std::string_view words) {
  constexpr std::string_view kMissing = "ModuleNotFoundError: No module named '";
  const auto begin = words.find(kMissing);
  if (begin == std::string_view::npos || command.empty()) return {};
  if (!NameOf(command[0]).starts_with("python")) return {};
  const std::string_view rest = words.substr(begin + kMissing.size());
  const std::string_view module = rest.substr(0, rest.find('\''));
  const bool from_path = command[0].find('/') == std::string::npos;
  return fmt::format(
      "the python was {}{}; activate the environment that has {}, or give the path of its python",
      program, from_path ? fmt::format(", which is PATH's {}", command[0]) : "", module);
}

std::string DescriptorLimit() { return LimitText("-n", RLIMIT_NOFILE, "open files"); }
std::string ProcessLimit() { return LimitText("-u", RLIMIT_NPROC, "processes of this user"); }

std::string StartAdvice(const std::string& program, int start_error) {
  switch (start_error) {
    case EAGAIN:
      return fmt::format(
          "a limit of processes is reached: {}, or pids.max of the control group; "
          "raise it, or run fewer ranks",
          ProcessLimit());
    case EMFILE:
    case ENFILE:
      return fmt::format("raise {}, or run fewer ranks", DescriptorLimit());
    case ENOENT:
    case ENOTDIR:
      return MissingFile(program);
    case EACCES:
      return Denied(program);
    case ENOEXEC:
      return program +
             " is no program of this machine; a script needs a first line such as #!/bin/sh";
    default:
      return {};
  }
}

}  // namespace muster::agent
