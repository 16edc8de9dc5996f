#include "agent/shim/job_cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace muster::agent::shim {
namespace {

// A worker can nest as deep as cgroup.max.depth lets it; our stack cannot.
constexpr int kMaxCgroupDepth = 64;

/// Reads a small file whole; "" when it cannot be read.
void ReadFile(const char* path, char* buffer, std::size_t size) {
  buffer[0] = '\0';
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  std::size_t used = 0;
  while (used + 1 < size) {
    const ssize_t n = ::read(fd, buffer + used, size - 1 - used);
    if (n <= 0) break;
    used += static_cast<std::size_t>(n);
  }
  buffer[used] = '\0';
  ::close(fd);
}

/// Our place in the v2 hierarchy: the line "0::/path" of /proc/self/cgroup.
bool OwnCgroup(char* path, std::size_t size) {
  char text[4096];
  ReadFile("/proc/self/cgroup", text, sizeof(text));
  const char* line = std::strncmp(text, "0::", 3) == 0 ? text : std::strstr(text, "\n0::");
  if (line == nullptr) return false;
  line += *line == '\n' ? 4 : 3;
  const std::size_t length = std::strcspn(line, "\n");
  if (length + 1 > size) return false;
  std::memcpy(path, line, length);
  path[length] = '\0';
  return true;
}

/// Removes the groups in the open folder, the deepest first. Returns how many went.
int RemoveBelow(int folder, int depth) {
  alignas(8) char buffer[2048];
  int removed = 0;
  for (ssize_t n = 0; (n = ::getdents64(folder, buffer, sizeof(buffer))) > 0;) {
    for (ssize_t at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      if (entry->d_type != DT_DIR || std::strcmp(entry->d_name, ".") == 0) continue;
      if (std::strcmp(entry->d_name, "..") == 0) continue;
      const int below = ::openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (below < 0) continue;
      if (depth < kMaxCgroupDepth) removed += RemoveBelow(below, depth + 1);
      ::close(below);
      if (::unlinkat(folder, entry->d_name, AT_REMOVEDIR) == 0) ++removed;
    }
  }
  return removed;
}

}  // namespace

bool KillCgroup(const char* path) {
  char file[kMaxCgroupPath + 32];
  const int n = std::snprintf(file, sizeof(file), "%s/cgroup.kill", path);
  if (n < 0 || static_cast<std::size_t>(n) >= sizeof(file)) return false;
  const int fd = ::open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool done = ::write(fd, "1", 1) == 1;
  ::close(fd);
  return done;
}

bool RemoveCgroup(const char* path) {
  // Again while something goes: a listing may pass over an entry while others are removed.
  while (::rmdir(path) < 0) {
    if (errno == ENOENT) return true;
    const int fd = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT;
    const int removed = RemoveBelow(fd, 0);
    ::close(fd);
    if (removed == 0) return ::rmdir(path) == 0;
  }
  return true;
}

bool JobCgroup::Make(const char* id) {
  char own[kMaxCgroupPath];
  if (!OwnCgroup(own, sizeof(own))) return false;
  const bool unified = ::access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
  const char* root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/unified";
  const char* below = std::strcmp(own, "/") == 0 ? "" : own;
  const int n = std::snprintf(path, sizeof(path), "%s%s/muster-%s", root, below, id);
  const bool made = n > 0 && static_cast<std::size_t>(n) < sizeof(path) && ::mkdir(path, 0755) == 0;
  if (!made) path[0] = '\0';
  return made && MakeLeaf();
}

bool JobCgroup::MakeLeaf() {
  const int n = std::snprintf(leaf, sizeof(leaf), "%s/%u", path, ++leaves);
  if (n < 0 || static_cast<std::size_t>(n) >= sizeof(leaf) || ::mkdir(leaf, 0755) < 0) {
    leaf[0] = '\0';
    return false;
  }
  fd = ::open(leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  events_fd = fd < 0 ? -1 : ::openat(fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
  // Without cgroup.kill a kill races with fork; our own children are then the better way.
  if (events_fd >= 0 && ::faccessat(fd, "cgroup.kill", W_OK, 0) == 0) return true;
  RemoveLeaf();
  return false;
}

void JobCgroup::RemoveLeaf() {
  if (events_fd >= 0) ::close(events_fd);
  if (fd >= 0) ::close(fd);
  events_fd = fd = -1;
  if (leaf[0] != '\0') RemoveCgroup(leaf);
  leaf[0] = '\0';
}

void JobCgroup::Renew() {
  if (fd < 0) return;
  RemoveLeaf();
  MakeLeaf();
}

bool JobCgroup::Populated() const {
  char text[256];
  const ssize_t n = ::pread(events_fd, text, sizeof(text) - 1, 0);
  if (n <= 0) return false;
  text[n] = '\0';
  return std::strstr(text, "populated 1") != nullptr;
}

std::uint32_t JobCgroup::Count() const {
  const int procs = fd < 0 ? -1 : ::openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
  if (procs < 0) return 0;
  std::uint32_t lines = 0;
  char text[4096];
  for (ssize_t n = 0; (n = ::read(procs, text, sizeof(text))) > 0;) {
    for (ssize_t i = 0; i < n; ++i) lines += text[i] == '\n' ? 1 : 0;
  }
  ::close(procs);
  return lines;
}

void JobCgroup::Remove() {
  RemoveLeaf();
  if (path[0] != '\0') RemoveCgroup(path);
  path[0] = '\0';
}

}  // namespace muster::agent::shim
