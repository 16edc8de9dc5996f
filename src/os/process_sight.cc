#include "os/process_sight.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>

#include "base/file_system.h"

namespace muster::os {
namespace {

// Fields of stat behind the name.
constexpr std::size_t kState = 0;
constexpr std::size_t kParent = 1;
constexpr std::size_t kUserTime = 11;
constexpr std::size_t kSystemTime = 12;
constexpr std::size_t kThreads = 17;
constexpr std::size_t kStartTime = 19;
using Fields = std::array<std::string_view, kStartTime + 1>;

std::uint64_t Number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Takes the next word off `text`; "" at its end.
std::string_view TakeWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
  text.remove_prefix(word.size());
  return word;
}

ProcessState StateOf(char letter) {
  switch (letter) {
    case 'R':
      return ProcessState::kRunning;
    case 'D':
      return ProcessState::kUninterrupted;
    case 'T':
      return ProcessState::kStopped;
    case 't':
      return ProcessState::kTraced;
    case 'Z':
    case 'X':
      return ProcessState::kDead;
    default:
      return ProcessState::kSleeping;
  }
}

/// Behind `key` at a line's begin; 0 without.
std::uint64_t NumberOf(std::string_view text, std::string_view key) {
  const auto at = text.find(key);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + key.size());
  return Number(TakeWord(text));
}

}  // namespace

Result<ProcessWatch> ProcessWatch::Open(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/stat", pid);
  Fd stat(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!stat.valid()) return ErrnoError("open " + path, errno);
  return ProcessWatch(std::move(stat));
}

Result<ProcessSight> ProcessWatch::See() const {
  std::array<char, 1024> text;  // some fifty numbers and a name of 64 bytes at most
  const ssize_t size = ::pread(stat_.get(), text.data(), text.size(), 0);
  if (size < 0) return ErrnoError("look at a process", errno == ESRCH ? ENOENT : errno);
  const std::string_view stat(text.data(), static_cast<std::size_t>(size));
  // The name may hold anything, so the last parenthesis ends it.
  const auto name = stat.rfind(')');
  if (name == std::string_view::npos) return Error(Code::kNotFound, "/proc tells nothing of it");
  std::string_view rest = stat.substr(name + 1);
  Fields fields;
  for (std::string_view& field : fields) field = TakeWord(rest);
  return ProcessSight{.state = StateOf(fields[kState].empty() ? 'X' : fields[kState][0]),
                      .cpu_ticks = Number(fields[kUserTime]) + Number(fields[kSystemTime]),
                      .start_ticks = Number(fields[kStartTime]),
                      .parent = static_cast<pid_t>(Number(fields[kParent])),
                      .threads = static_cast<std::uint32_t>(Number(fields[kThreads]))};
}

Result<ProcessSight> SeeProcess(pid_t pid) {
  ProcessSight sight = MUSTER_TRY(MUSTER_TRY(ProcessWatch::Open(pid)).See());
  if (sight.state == ProcessState::kDead) return sight;
  const auto status = PosixFiles().ReadAll(fmt::format("/proc/{}/status", pid), 16_KiB);
  if (status && NumberOf(*status, "TracerPid:") != 0) sight.state = ProcessState::kTraced;
  return sight;
}

Result<std::uint64_t> SeeIo(pid_t pid) {
  const std::string io = MUSTER_TRY(PosixFiles().ReadAll(fmt::format("/proc/{}/io", pid), 4_KiB));
  return NumberOf(io, "rchar:") + NumberOf(io, "wchar:");
}

}  // namespace muster::os
