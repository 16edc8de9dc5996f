#include "os/process_sight.h"

#include <fmt/format.h>

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

Result<ProcessSight> SeeProcess(pid_t pid) {
  const std::string folder = fmt::format("/proc/{}", pid);
  const std::string stat = MUSTER_TRY(PosixFiles().ReadAll(folder + "/stat", 4_KiB));
  // The name may hold anything, so the last parenthesis ends it.
  const auto name = stat.rfind(')');
  if (name == std::string::npos) return Error(Code::kNotFound, folder + " tells nothing");
  const std::string_view fields = std::string_view(stat).substr(name + 1);
  const std::string_view letter = Word(fields, 0);
  ProcessSight sight{StateOf(letter.empty() ? 'X' : letter[0]),
                     Number(Word(fields, kUserTime)) + Number(Word(fields, kSystemTime)),
                     Number(Word(fields, kStartTime))};
  if (sight.state == ProcessState::kDead) return sight;
  const auto status = PosixFiles().ReadAll(folder + "/status", 16_KiB);
  if (status && NumberOf(*status, "TracerPid:") != 0) sight.state = ProcessState::kTraced;
  return sight;
}

Result<std::uint64_t> SeeIo(pid_t pid) {
  const std::string io = MUSTER_TRY(PosixFiles().ReadAll(fmt::format("/proc/{}/io", pid), 4_KiB));
  return NumberOf(io, "rchar:") + NumberOf(io, "wchar:");
}

}  // namespace muster::os
