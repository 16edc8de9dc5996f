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

constexpr std::size_t kUserTime = 11;  // fields of stat behind the name, from 0: state
constexpr std::size_t kSystemTime = 12;
constexpr std::size_t kStartTime = 19;

std::uint64_t Number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// The index-th word of `text`, "" beyond its end.
std::string_view Word(std::string_view text, std::size_t index) {
  for (;; --index) {
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    if (index == 0) return word;
    text.remove_prefix(word.size());
    if (text.empty()) return {};
  }
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
  return at == std::string_view::npos ? 0 : Number(Word(text.substr(at + key.size()), 0));
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
  const std::string_view fields = stat.substr(name + 1);
  const std::string_view letter = Word(fields, 0);
  return ProcessSight{StateOf(letter.empty() ? 'X' : letter[0]),
                      Number(Word(fields, kUserTime)) + Number(Word(fields, kSystemTime)),
                      Number(Word(fields, kStartTime))};
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
