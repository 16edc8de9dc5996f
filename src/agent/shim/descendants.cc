#include "agent/shim/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace muster::agent::shim {
namespace {

ssize_t ReadSmall(const char* path, char* buffer, std::size_t size) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  std::size_t used = 0;
  // /proc gives a page at a time, however much is asked for.
  for (ssize_t n = 1; n > 0 && used + 1 < size; used += static_cast<std::size_t>(n > 0 ? n : 0)) {
    n = ::read(fd, buffer + used, size - 1 - used);
  }
  ::close(fd);
  buffer[used] = '\0';
  return static_cast<ssize_t>(used);
}

/// True when it was there.
bool KillOne(pid_t pid, Spared spared) {
  if (pid <= 1 || pid == spared.zygote || pid == spared.helper) return false;
  return ::kill(pid, SIGKILL) == 0 || errno == EPERM;
}

/// 64 KiB hold about 8,000 pids; who is left over is met in the next round.
bool KillListed(Spared spared, std::uint32_t* killed) {
  static char list[1 << 16];
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/task/%d/children", ::getpid());
  if (ReadSmall(path, list, sizeof(list)) < 0) return false;
  char* cursor = list;
  for (;;) {
    char* end = nullptr;
    const long pid = std::strtol(cursor, &end, 10);
    if (end == cursor) return true;
    // A number that touches the end of the buffer may be cut: never kill by half a pid.
    if (*end != '\0' && KillOne(static_cast<pid_t>(pid), spared)) ++*killed;
    cursor = end;
  }
}

pid_t ParentOf(const char* pid) {
  char path[64];
  char text[512];
  std::snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
  if (ReadSmall(path, text, sizeof(text)) <= 0) return -1;
  // The name may hold anything, a ')' too: the last one ends it.
  const char* after = std::strrchr(text, ')');
  if (after == nullptr || std::strlen(after) < 5) return -1;
  return static_cast<pid_t>(std::strtol(after + 4, nullptr, 10));
}

/// For kernels without CONFIG_PROC_CHILDREN. getdents64 into a static buffer: opendir would
/// allocate.
void KillScanned(Spared spared, std::uint32_t* killed) {
  alignas(8) static char buffer[1 << 15];
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  for (;;) {
    const ssize_t n = ::getdents64(proc, buffer, sizeof(buffer));
    if (n <= 0) break;
    for (ssize_t at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
      if (ParentOf(entry->d_name) != ::getpid()) continue;
      const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
      if (KillOne(pid, spared)) ++*killed;
    }
  }
  ::close(proc);
}

}  // namespace

std::uint32_t KillChildren(Spared spared) {
  std::uint32_t killed = 0;
  if (!KillListed(spared, &killed)) KillScanned(spared, &killed);
  return killed;
}

bool CatchesSignal(pid_t pid, int signal) {
  char path[64];
  char text[4096];
  std::snprintf(path, sizeof(path), "/proc/%d/status", pid);
  if (ReadSmall(path, text, sizeof(text)) <= 0) return false;
  const char* line = std::strstr(text, "\nSigCgt:");
  if (line == nullptr) return false;
  const unsigned long long mask = std::strtoull(line + 8, nullptr, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

}  // namespace muster::agent::shim
