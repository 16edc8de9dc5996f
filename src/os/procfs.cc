#include "os/procfs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/file_system.h"

namespace muster::os {
namespace {

constexpr Bytes kStatLimit = 16_KiB;
constexpr Bytes kChildrenLimit = 4_MiB;

/// Cuts the next word off `text`; empty at its end.
std::string_view NextWord(std::string_view& text) {
  const auto begin = std::min(text.find_first_not_of(" \n"), text.size());
  const auto end = std::min(text.find_first_of(" \n", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

template <typename T>
std::optional<T> Number(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

Error NotAStatLine() { return {Code::kDataLoss, "this is not a line of /proc/PID/stat"}; }

/// The value of "Name:\tvalue" in /proc/PID/status. Names of processes cannot forge a line: the
/// kernel escapes newlines there.
std::optional<std::string_view> FieldOf(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    line.remove_prefix(name.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line;
  }
  return std::nullopt;
}

std::string PathOf(pid_t pid, std::string_view file) {
  return fmt::format("/proc/{}/{}", pid, file);
}

}  // namespace

Result<ProcessStat> ParseProcessStat(std::string_view text) {
  // The name may hold anything, ") R 1" too; what follows it holds no bracket.
  const auto open = text.find(" (");
  const auto close = text.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2) {
    return NotAStatLine();
  }
  ProcessStat stat;
  stat.name = text.substr(open + 2, close - open - 2);
  const auto pid = Number<pid_t>(text.substr(0, open));
  std::string_view rest = text.substr(close + 2);
  const std::string_view state = NextWord(rest);
  if (!pid || state.size() != 1) return NotAStatLine();
  stat.pid = *pid;
  stat.state = state[0];
  // Fields 4 … 22 of proc(5), the first at index 0.
  constexpr std::size_t kFields = 19;
  std::array<std::int64_t, kFields> fields{};
  for (std::int64_t& field : fields) {
    const auto value = Number<std::int64_t>(NextWord(rest));
    if (!value) return NotAStatLine();
    field = *value;
  }
  stat.parent = static_cast<pid_t>(fields[0]);
  stat.group = static_cast<pid_t>(fields[1]);
  stat.session = static_cast<pid_t>(fields[2]);
  stat.user_ticks = static_cast<std::uint64_t>(fields[10]);
  stat.system_ticks = static_cast<std::uint64_t>(fields[11]);
  stat.threads = static_cast<std::uint64_t>(fields[16]);
  stat.start_ticks = static_cast<std::uint64_t>(fields[18]);
  return stat;
}

Result<ProcessStat> ReadProcessStat(pid_t pid) {
  return ParseProcessStat(MUSTER_TRY(PosixFiles().ReadAll(PathOf(pid, "stat"), kStatLimit)));
}

Result<ProcessSignals> ParseProcessSignals(std::string_view text) {
  ProcessSignals signals;
  const auto read = [&](std::string_view name, auto& value, int base) -> Status {
    const auto field = FieldOf(text, name);
    const auto number =
        field ? Number<std::remove_reference_t<decltype(value)>>(*field, base) : std::nullopt;
    if (!number) return Error(Code::kDataLoss, fmt::format("/proc/PID/status without {}", name));
    value = *number;
    return Ok();
  };
  MUSTER_TRY(read("SigBlk", signals.blocked, 16));
  MUSTER_TRY(read("SigIgn", signals.ignored, 16));
  MUSTER_TRY(read("SigCgt", signals.caught, 16));
  MUSTER_TRY(read("TracerPid", signals.tracer, 10));
  return signals;
}

Result<ProcessSignals> ReadProcessSignals(pid_t pid) {
  return ParseProcessSignals(MUSTER_TRY(PosixFiles().ReadAll(PathOf(pid, "status"), kStatLimit)));
}

Result<std::vector<pid_t>> ReadChildren(pid_t pid) {
  std::vector<pid_t> children;
  for (const std::string& thread : MUSTER_TRY(PosixFiles().List(PathOf(pid, "task")))) {
    const auto text =
        PosixFiles().ReadAll(PathOf(pid, "task/" + thread + "/children"), kChildrenLimit);
    if (!text && text.error().code() == Code::kNotFound) continue;  // the thread ended meanwhile
    if (!text) return text.error();
    std::string_view rest = *text;
    while (const auto child = Number<pid_t>(NextWord(rest))) children.push_back(*child);
  }
  std::sort(children.begin(), children.end());
  return children;
}

Result<std::size_t> CountThreads() {
  return MUSTER_TRY(PosixFiles().List("/proc/self/task")).size();
}

}  // namespace muster::os
