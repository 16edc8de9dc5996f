#include "os/oom_count.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/file_system.h"

namespace muster::os {
namespace {

constexpr Bytes kMostGroups{1 << 20};
constexpr std::string_view kKey = "oom_kill ";

bool Lists(std::string_view controllers, std::string_view name) {
  while (!controllers.empty()) {
    const auto end = controllers.find(',');
    if (controllers.substr(0, end) == name) return true;
    controllers = end == std::string_view::npos ? "" : controllers.substr(end + 1);
  }
  return false;
}

/// Where the count may be, the likeliest first. `groups` is a /proc/PID/cgroup, of lines
/// "4:memory:/path" (v1) and "0::/path" (v2). In a container the path may be one of the host, and
/// the mount then is the group.
std::vector<std::string> PlacesOf(const std::string& mounts, std::string_view groups) {
  std::vector<std::string> v1, v2;
  while (!groups.empty()) {
    const std::string_view line = groups.substr(0, groups.find('\n'));
    groups.remove_prefix(std::min(groups.size(), line.size() + 1));
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (Lists(controllers, "memory")) {
      v1 = {fmt::format("{}/memory{}/memory.oom_control", mounts, path),
            fmt::format("{}/memory/memory.oom_control", mounts)};
    } else if (line.substr(0, first) == "0") {
      v2 = {fmt::format("{}{}/memory.events", mounts, path),
            fmt::format("{}/memory.events", mounts)};
    }
  }
  v1.insert(v1.end(), v2.begin(), v2.end());
  return v1;
}

}  // namespace

Result<OomCount> OomCount::Open(const std::string& mounts, const std::string& groups) {
  const std::string text = MUSTER_TRY(PosixFiles().ReadAll(groups, kMostGroups));
  for (std::string& path : PlacesOf(mounts, text)) {
    Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) continue;
    OomCount count(std::move(path), std::move(file));
    if (count.Read()) return count;
  }
  return Error(Code::kNotFound, fmt::format("no control group below {} counts OOM kills", mounts));
}

Result<std::uint64_t> OomCount::Read() const {
  std::array<char, 4096> buffer{};
  const ssize_t size = ::pread(file_.get(), buffer.data(), buffer.size(), 0);
  if (size < 0) return ErrnoError("read " + path_, errno);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    std::uint64_t kills = 0;
    if (!line.starts_with(kKey)) continue;
    const std::string_view number = line.substr(kKey.size());
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), kills);
    if (error == std::errc() && end == number.data() + number.size()) return kills;
  }
  return Error(Code::kNotFound, fmt::format("{} does not count OOM kills", path_));
}

}  // namespace muster::os
