#include "agent/health/sight.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include <charconv>
#include <ctime>

namespace muster::agent::health {
namespace {

constexpr Bytes kMostSmall = 1_MiB;

Limit LimitOf(Resource resource) {
  rlimit limit{};
  switch (resource) {
    case Resource::kFiles:
      ::getrlimit(RLIMIT_NOFILE, &limit);
      break;
    case Resource::kProcesses:
      ::getrlimit(RLIMIT_NPROC, &limit);
      break;
    case Resource::kLockedMemory:
      ::getrlimit(RLIMIT_MEMLOCK, &limit);
      break;
    case Resource::kCore:
      ::getrlimit(RLIMIT_CORE, &limit);
      break;
  }
  const auto known = [](rlim_t value) {
    return value == RLIM_INFINITY ? std::nullopt : std::optional<std::uint64_t>(value);
  };
  return {.soft = known(limit.rlim_cur), .hard = known(limit.rlim_max)};
}

ClockSight Clock() {
  timex state{};  // no mode: only read
  const int verdict = ::adjtimex(&state);
  ClockSight sight;
  sight.known = verdict >= 0;
  sight.synchronised = verdict >= 0 && verdict != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
  sight.error = std::chrono::microseconds(state.esterror);
  sight.since_epoch = std::chrono::seconds(std::time(nullptr));
  return sight;
}

std::optional<Space> SpaceAt(const std::string& path) {
  struct statvfs state{};
  if (::statvfs(path.c_str(), &state) != 0) return std::nullopt;
  const auto unit = static_cast<std::int64_t>(state.f_frsize);
  return Space{.size = {static_cast<std::int64_t>(state.f_blocks) * unit},
               .free = {static_cast<std::int64_t>(state.f_bavail) * unit}};
}

}  // namespace

Sight ThisMachine() {
  return {.files = PosixFiles(), .limit = LimitOf, .clock = Clock, .space = SpaceAt};
}

std::optional<std::string> ReadSmall(FileSystem& files, const std::string& path) {
  auto text = files.ReadAll(path, kMostSmall);
  if (!text) return std::nullopt;
  const auto begin = text->find_first_not_of(" \t\n");
  if (begin == std::string::npos) return std::string();
  return text->substr(begin, text->find_last_not_of(" \t\n") + 1 - begin);
}

std::optional<std::uint64_t> ReadNumber(FileSystem& files, const std::string& path) {
  const auto text = ReadSmall(files, path);
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace muster::agent::health
