#include "agent/health/reading_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"

namespace muster::agent::health {
namespace {

using Verdict = Check::Verdict;

std::string Shown(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "unlimited";
}

Verdict Held(std::uint64_t value, std::uint64_t fail_below, std::uint64_t warn_below) {
  if (value < fail_below) return Verdict::kFail;
  return value < warn_below ? Verdict::kWarn : Verdict::kOk;
}

Check LimitCheck(std::string name, const Limit& limit, std::uint64_t fail_below,
                 std::uint64_t warn_below, std::string_view flag) {
  Check check{.name = std::move(name), .measured = {}, .limit = {}, .advice = {}};
  check.measured = fmt::format("{} (hard {})", Shown(limit.soft), Shown(limit.hard));
  check.limit = fmt::format("{} or more", warn_below);
  if (limit.soft) check.verdict = Held(*limit.soft, fail_below, warn_below);
  if (check.verdict == Verdict::kOk) return check;
  const bool ours = !limit.hard || *limit.hard >= warn_below;
  check.advice = ours ? fmt::format("ulimit -{} {} before muster run or muster agent", flag,
                                    limit.hard ? std::to_string(*limit.hard) : "unlimited")
                      : "raise the hard limit: /etc/security/limits.d, or Limit… of the unit";
  return check;
}

/// The value behind "NAME:" in a file such as /proc/meminfo, in kB there.
std::optional<std::uint64_t> Line(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  bool any = false;
  for (const char c : text.substr(at + name.size())) {
    if (c >= '0' && c <= '9' && number < 1'000'000'000'000) {
      number = number * 10 + static_cast<std::uint64_t>(c - '0');
      any = true;
    } else if (any || c == '\n') {
      break;
    }
  }
  return any ? std::optional(number) : std::nullopt;
}

/// The folder of our cgroup for pids: "0::/path" in the one hierarchy, or v1's "N:pids:/path".
std::vector<std::string> PidsFolders(FileSystem& files) {
  const auto text = ReadSmall(files, "/proc/self/cgroup");
  std::vector<std::string> folders;
  if (!text) return folders;
  std::size_t at = 0;
  while (at < text->size()) {
    const auto end = std::min(text->find('\n', at), text->size());
    const std::string line = text->substr(at, end - at);
    at = end + 1;
    const auto path = line.rfind(':');
    if (path == std::string::npos) continue;
    if (line.starts_with("0::")) {
      folders.push_back("/sys/fs/cgroup" + line.substr(path + 1));
      folders.push_back("/sys/fs/cgroup/unified" + line.substr(path + 1));
    } else if (line.find(":pids:") != std::string::npos) {
      folders.push_back("/sys/fs/cgroup/pids" + line.substr(path + 1));
      folders.emplace_back("/sys/fs/cgroup/pids");
    }
  }
  return folders;
}

}  // namespace

Check CheckClock(const Sight& sight) {
  // Before this version of Muster was written.
  constexpr std::chrono::seconds kEarliest{1'750'000'000};
  const ClockSight clock = sight.clock();
  Check check{.name = "clock", .measured = {}, .limit = "set, and synchronised", .advice = {}};
  if (clock.since_epoch < kEarliest) {
    check.verdict = Verdict::kFail;
    check.measured = fmt::format("{} s since 1970", clock.since_epoch.count());
    check.advice = "set the clock: certificates and time stamps are held against it";
  } else if (!clock.known || !clock.synchronised) {
    check.verdict = Verdict::kWarn;
    check.measured = clock.known ? "not synchronised" : "the kernel does not tell";
    check.advice =
        "on several hosts run chrony or systemd-timesyncd: their logs are merged by time";
  } else {
    check.measured = fmt::format("synchronised, error about {}", FormatDuration(clock.error));
  }
  return check;
}

Check CheckFiles(const Sight& sight) {
  return LimitCheck("nofile", sight.limit(Resource::kFiles), 256, 4096, "n");
}

Check CheckProcesses(const Sight& sight) {
  return LimitCheck("nproc", sight.limit(Resource::kProcesses), 64, 2048, "u");
}

Check CheckLockedMemory(const Sight& sight) {
  const Limit limit = sight.limit(Resource::kLockedMemory);
  Check check{.name = "memlock", .measured = {}, .limit = "unlimited beside RDMA", .advice = {}};
  check.measured = limit.soft ? FormatBytes({static_cast<std::int64_t>(*limit.soft)}) : "unlimited";
  if (limit.soft && sight.files.Exists("/dev/infiniband")) {
    check.verdict = Verdict::kWarn;
    check.advice =
        "ulimit -l unlimited, or LimitMEMLOCK=infinity of the unit: RDMA registers memory";
  }
  return check;
}

Check CheckCores(const Sight& sight) {
  const Limit limit = sight.limit(Resource::kCore);
  const auto pattern = ReadSmall(sight.files, "/proc/sys/kernel/core_pattern");
  Check check{.name = "core", .measured = {}, .limit = {}, .advice = {}};
  const std::string where = pattern.value_or("unknown pattern");
  if (limit.soft == std::uint64_t{0} && !where.starts_with('|')) {
    check.measured = "no core files (limit 0)";
    check.advice = "ulimit -c unlimited, to keep the core of a worker that crashes";
  } else {
    check.measured = where.starts_with('|') ? "piped: " + where.substr(1) : where;
  }
  return check;
}

Check CheckPids(const Sight& sight) {
  Check check{.name = "pids", .measured = {}, .limit = "1024 left, or more", .advice = {}};
  std::uint64_t left = ReadNumber(sight.files, "/proc/sys/kernel/pid_max").value_or(32'768);
  std::string what = fmt::format("kernel: up to {}", left);
  for (const std::string& folder : PidsFolders(sight.files)) {
    const auto most = ReadNumber(sight.files, folder + "/pids.max");  // "max" is no number
    const auto now = ReadNumber(sight.files, folder + "/pids.current");
    if (!most || !now) continue;
    const std::uint64_t here = *most > *now ? *most - *now : 0;
    if (here >= left) continue;
    left = here;
    what = fmt::format("{} of {} used by {}", *now, *most, folder);
  }
  check.measured = what;
  check.verdict = Held(left, 64, 1024);
  if (check.verdict != Verdict::kOk)
    check.advice =
        "raise pids.max of that group (TasksMax of the unit, --pids-limit of the container)";
  return check;
}

Check CheckPtrace(const Sight& sight) {
  Check check{.name = "ptrace", .measured = {}, .limit = "0 or 1", .advice = {}};
  const auto scope = ReadNumber(sight.files, "/proc/sys/kernel/yama/ptrace_scope");
  check.measured = scope ? fmt::format("ptrace_scope {}", *scope) : "not restricted (no Yama)";
  if (scope.value_or(0) >= 2) {
    check.verdict = Verdict::kWarn;
    check.advice = *scope == 2
                       ? "stacks of workers need CAP_SYS_PTRACE: sysctl kernel.yama.ptrace_scope=1"
                       : "no stacks of workers until the next boot: ptrace_scope 3 stays";
  }
  return check;
}

Check CheckMemory(const Sight& sight) {
  Check check{.name = "memory", .measured = "unknown", .limit = "1 GiB or more", .advice = {}};
  const auto text = ReadSmall(sight.files, "/proc/meminfo");
  const auto kib = text ? Line(*text, "MemAvailable:") : std::nullopt;
  if (!kib) {
    check.verdict = Verdict::kSkipped;
    check.advice = "/proc/meminfo does not tell";
    return check;
  }
  check.measured = FormatBytes({static_cast<std::int64_t>(*kib) * 1024}) + " available";
  check.verdict = Held(*kib, 256 * 1024, 1024 * 1024);
  if (check.verdict != Verdict::kOk)
    check.advice = "end what uses the memory, or take another host";
  return check;
}

Check CheckGpus(const Sight& sight) {
  Check check{.name = "gpu", .measured = {}, .limit = {}, .advice = {}};
  const auto numbered = [](const std::string& name) {
    constexpr std::string_view kName = "nvidia";
    return name.size() > kName.size() && name.starts_with(kName) &&
           name.find_first_not_of("0123456789", kName.size()) == std::string::npos;
  };
  const auto devices = sight.files.List("/dev");
  const auto count = devices ? std::ranges::count_if(*devices, numbered) : 0;
  std::ptrdiff_t on_bus = 0;
  for (const std::string& name :
       sight.files.List("/sys/bus/pci/devices").value_or(std::vector<std::string>{})) {
    const std::string folder = "/sys/bus/pci/devices/" + name;
    const bool nvidia = ReadSmall(sight.files, folder + "/vendor") == "0x10de";
    // 0x03….: a display or 3D controller; an NVIDIA bridge is none.
    if (nvidia && ReadSmall(sight.files, folder + "/class").value_or("").starts_with("0x03"))
      ++on_bus;
  }
  const auto driver = ReadSmall(sight.files, "/proc/driver/nvidia/version");
  if (count == 0 && on_bus == 0) {
    check.measured = "none";
    return check;
  }
  const std::string version = driver ? driver->substr(0, driver->find('\n')) : "no driver";
  check.measured = fmt::format("{} of {}, {}", count, std::max(count, on_bus), version);
  check.limit = "a driver, and every GPU of the bus";
  if (!driver) {
    check.verdict = Verdict::kFail;
    check.advice = "load the driver: modprobe nvidia; see dmesg";
  } else if (on_bus > count) {
    check.verdict = Verdict::kWarn;
    check.advice =
        "a GPU of the bus has no device: nvidia-smi, dmesg, or it is not given to this container";
  }
  return check;
}

}  // namespace muster::agent::health
