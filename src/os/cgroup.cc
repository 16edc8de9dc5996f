#include "os/cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/clock.h"
#include "base/file_system.h"

namespace muster::os {
namespace {

constexpr Bytes kFileLimit = 4_MiB;
constexpr int kMaxDepth = 32;

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// mountinfo writes space, tab, newline and backslash as \ooo.
std::string Unescape(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    int value = 0;
    const bool escaped =
        text[0] == '\\' && text.size() >= 4 &&
        std::from_chars(text.data() + 1, text.data() + 4, value, 8).ptr == text.data() + 4 &&
        value < 256;
    plain += escaped ? static_cast<char>(value) : text[0];
    text.remove_prefix(escaped ? 4 : 1);
  }
  return plain;
}

Result<std::string> ReadIn(const std::string& folder, const char* name) {
  return PosixFiles().ReadAll(folder + "/" + name, kFileLimit);
}

Status WriteIn(const Fd& folder, const std::string& path, const char* name, std::string_view text) {
  const Fd file(::openat(folder.get(), name, O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoError("open " + path + "/" + name, errno);
  if (::write(file.get(), text.data(), text.size()) < 0) {
    return ErrnoError("write " + path + "/" + name, errno);
  }
  return Ok();
}

bool SaysPopulated(std::string_view events) {
  const auto lines = Split(events, '\n');
  return std::find(lines.begin(), lines.end(), "populated 1") != lines.end();
}

/// rmdir from the leaves up; the files in a group are the kernel's and go with it.
Status RemoveGroups(const std::string& path, int depth) {
  if (depth > kMaxDepth) return Error(Code::kPrecondition, path + " is nested too deeply");
  const auto names = PosixFiles().List(path);
  if (!names && names.error().code() == Code::kNotFound) return Ok();
  if (!names) return names.error();
  for (const std::string& name : *names) {
    struct stat info{};
    const std::string child = path + "/" + name;
    if (::lstat(child.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      MUSTER_TRY(RemoveGroups(child, depth + 1));
    }
  }
  if (::rmdir(path.c_str()) < 0 && errno != ENOENT) return ErrnoError("remove " + path, errno);
  return Ok();
}

}  // namespace

std::optional<std::string> ParseCgroupMount(std::string_view mountinfo) {
  for (const std::string_view line : Split(mountinfo, '\n')) {
    const auto dash = line.find(" - ");
    if (dash == std::string_view::npos || !line.substr(dash + 3).starts_with("cgroup2 ")) continue;
    const auto fields = Split(line.substr(0, dash), ' ');
    // 3 is the mounted part of the hierarchy: a bind mount of a subtree would not hold our path.
    if (fields.size() < 5 || fields[3] != "/") continue;
    return Unescape(fields[4]);
  }
  return std::nullopt;
}

std::optional<std::string> ParseOwnCgroup(std::string_view cgroup) {
  for (const std::string_view line : Split(cgroup, '\n')) {
    // "/.." leads out of a cgroup namespace, to a group that we do not see.
    if (!line.starts_with("0::/") || line.find("/..") != std::string_view::npos) continue;
    return std::string(line.substr(3));
  }
  return std::nullopt;
}

std::optional<std::string> FindWritableCgroup() {
  const auto mounts = PosixFiles().ReadAll("/proc/self/mountinfo", kFileLimit);
  const auto own = PosixFiles().ReadAll("/proc/self/cgroup", kFileLimit);
  if (!mounts || !own) return std::nullopt;
  const auto mount = ParseCgroupMount(*mounts);
  const auto path = ParseOwnCgroup(*own);
  if (!mount || !path) return std::nullopt;
  const std::string folder = *path == "/" ? *mount : *mount + *path;
  if (::access(folder.c_str(), W_OK | X_OK) < 0) return std::nullopt;
  if (::access((folder + "/cgroup.procs").c_str(), W_OK) < 0) return std::nullopt;
  return folder;
}

Result<Cgroup> Cgroup::Create(const std::string& parent, const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    return Error(Code::kInvalid, "'" + name + "' is no name for a cgroup");
  }
  std::string path = parent + "/" + name;
  if (::mkdir(path.c_str(), 0755) < 0) return ErrnoError("create cgroup " + path, errno);
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder.valid()) return ErrnoError("open " + path, errno);
  if (::faccessat(folder.get(), "cgroup.kill", W_OK, 0) < 0) {
    const int error = errno;
    ::rmdir(path.c_str());
    return ErrnoError("cgroup.kill in " + path, error).Hint("it needs Linux 5.14");
  }
  return Cgroup(std::move(folder), std::move(path));
}

Status Cgroup::Freeze(bool frozen) {
  return WriteIn(folder_, path_, "cgroup.freeze", frozen ? "1" : "0");
}

Status Cgroup::Kill() { return WriteIn(folder_, path_, "cgroup.kill", "1"); }

Result<std::vector<pid_t>> Cgroup::Pids() const {
  std::vector<pid_t> pids;
  const std::string text = MUSTER_TRY(ReadIn(path_, "cgroup.procs"));
  for (const std::string_view line : Split(text, '\n')) {
    pid_t pid = 0;
    std::from_chars(line.data(), line.data() + line.size(), pid);
    if (pid > 0) pids.push_back(pid);  // 0 is a process of another pid namespace
  }
  return pids;
}

Result<bool> Cgroup::Populated() const {
  return SaysPopulated(MUSTER_TRY(ReadIn(path_, "cgroup.events")));
}

Result<bool> Cgroup::WaitEmpty(std::chrono::nanoseconds timeout) const {
  const Instant deadline = MonotonicClock::now() + timeout;
  const Fd events(::openat(folder_.get(), "cgroup.events", O_RDONLY | O_CLOEXEC));
  if (!events.valid()) return ErrnoError("open " + path_ + "/cgroup.events", errno);
  for (;;) {
    // The read also rearms the poll, so no change falls between the two.
    std::string text(256, '\0');
    const auto n = ::pread(events.get(), text.data(), text.size(), 0);
    if (n < 0) return ErrnoError("read " + path_ + "/cgroup.events", errno);
    if (!SaysPopulated(std::string_view(text).substr(0, static_cast<std::size_t>(n)))) return true;
    const auto left = deadline - MonotonicClock::now();
    if (left <= std::chrono::nanoseconds(0)) return false;
    pollfd entry{.fd = events.get(), .events = POLLPRI, .revents = 0};
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    if (::poll(&entry, 1, static_cast<int>(std::min<std::int64_t>(wait, 1000))) < 0 &&
        errno != EINTR) {
      return ErrnoError("poll " + path_ + "/cgroup.events", errno);
    }
  }
}

Status Cgroup::Remove() { return RemoveGroups(path_, 0); }

}  // namespace muster::os
