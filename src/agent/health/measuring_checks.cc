#include "agent/health/measuring_checks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <ctime>
#include <thread>

#include "base/duration.h"
#include "base/fd.h"
#include "base/text.h"
#include "os/process.h"
#include "os/wait_fd.h"

namespace muster::agent::health {
namespace {

using std::chrono::milliseconds;
using Verdict = Check::Verdict;
using Steady = std::chrono::steady_clock;

double Seconds(Steady::duration time) { return std::chrono::duration<double>(time).count(); }

/// The checks' own pattern: no page is like another.
std::string Pattern(Bytes size) {
  std::string bytes(static_cast<std::size_t>(size.count), '\0');
  std::uint64_t state = 0x9E3779B97F4A7C15;
  for (std::size_t i = 0; i + sizeof(state) <= bytes.size(); i += sizeof(state)) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(bytes.data() + i, &state, sizeof(state));
  }
  return bytes;
}

Status WriteProbe(FileSystem& files, const std::string& path, const std::string& bytes) {
  const auto file =
      MUSTER_TRY(files.Create(path, {.append = false, .replace = true, .mode = 0600}));
  MUSTER_TRY(file->Write(AsBytes(bytes)));
  MUSTER_TRY(file->Sync());
  return file->Close();
}

double ThreadSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Rounds of integer and floating point work in a second of the thread's own time.
double Rate(unsigned core, milliseconds each) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (::sched_setaffinity(0, sizeof(set), &set) != 0) return 0;
  const auto end = Steady::now() + each;
  const double begin = ThreadSeconds();
  std::uint64_t rounds = 0;
  std::uint64_t state = core + 1;
  double sum = 0;
  while (Steady::now() < end) {
    for (int i = 0; i < 20'000; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      sum += static_cast<double>(state >> 40) * 1e-9;
    }
    ++rounds;
  }
  const double used = ThreadSeconds() - begin;
  // The sum is used, so that it is computed.
  return used > 0 && sum >= 0 ? static_cast<double>(rounds) / used : 0;
}

std::vector<unsigned> AllowedCores() {
  cpu_set_t set;
  std::vector<unsigned> cores;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace

Check CheckFolder(const Sight& sight, const FolderNeeds& needs) {
  Check check{.name = needs.name, .measured = {}, .limit = {}, .advice = {}};
  check.limit = FormatBytes(needs.warn_below) + " free";
  const auto space = sight.space(needs.folder);
  if (!space) {
    check.verdict = Verdict::kFail;
    check.measured = needs.folder + " is not there";
    check.advice = "make it, or name another folder";
    return check;
  }
  const std::string free =
      fmt::format("{} of {} free", FormatBytes(space->free), FormatBytes(space->size));
  check.measured = free;
  if (space->free < needs.fail_below || space->free < needs.probe) {
    check.verdict = Verdict::kFail;
    check.advice = "make room in " + needs.folder;
    return check;
  }
  const std::string path = fmt::format("{}/muster-doctor-{}", needs.folder, ::getpid());
  const std::string bytes = Pattern(needs.probe);
  const auto begin = Steady::now();
  const Status written = WriteProbe(sight.files, path, bytes);
  const double took = Seconds(Steady::now() - begin);
  const auto read = written ? sight.files.ReadAll(path, needs.probe) : Result<std::string>("");
  (void)sight.files.RemoveAll(path);
  if (!written || !read || *read != bytes) {
    check.verdict = Verdict::kFail;
    check.measured = !written ? written.error().message()
                     : !read  ? read.error().message()
                              : "what was read is not what was written";
    check.advice = "this file system cannot be used: look at its mount and at dmesg";
    return check;
  }
  check.measured +=
      fmt::format(", {} written and synced in {}", FormatBytes(needs.probe),
                  FormatDuration(std::chrono::nanoseconds(static_cast<std::int64_t>(took * 1e9))));
  if (space->free < needs.warn_below) {
    check.verdict = Verdict::kWarn;
    check.advice = "make room in " + needs.folder;
  }
  return check;
}

std::vector<CoreSpeed> MeasureCores(milliseconds each) {
  const auto cores = AllowedCores();
  std::vector<CoreSpeed> speeds(cores.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    threads.emplace_back(
        [&speeds, &cores, i, each] { speeds[i] = {cores[i], Rate(cores[i], each)}; });
  }
  threads.clear();
  return speeds;
}

Check JudgeCores(const std::vector<CoreSpeed>& cores) {
  constexpr double kSlow = 0.7;
  Check check{.name = "cores", .measured = {}, .limit = "0.70 of the median", .advice = {}};
  std::vector<double> rates;
  for (const CoreSpeed& core : cores) rates.push_back(core.rate);
  if (rates.empty()) {
    check.verdict = Verdict::kSkipped;
    check.advice = "the kernel does not tell which cores are ours";
    return check;
  }
  std::ranges::nth_element(rates, rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2));
  const double median = rates[rates.size() / 2];
  std::vector<unsigned> slow;
  double slowest = 1;
  for (const CoreSpeed& core : cores) {
    const double part = median > 0 ? core.rate / median : 0;
    slowest = std::min(slowest, part);
    if (part < kSlow) slow.push_back(core.core);
  }
  check.measured = fmt::format("{}, the slowest at {:.2f}", Counted(cores.size(), "core"), slowest);
  if (slow.empty()) return check;
  check.verdict = Verdict::kWarn;
  check.measured += fmt::format(" (slow: {})", fmt::join(slow, ", "));
  check.advice = "look for throttling (dmesg, turbostat) or a neighbour on the same core";
  return check;
}

double MeasureBandwidth(milliseconds time) {
  constexpr std::size_t kBlock = std::size_t{64} << 20;  // beyond any cache
  std::vector<char> from(kBlock, 1);
  std::vector<char> to(kBlock, 2);
  const auto begin = Steady::now();
  std::uint64_t copied = 0;
  do {
    std::memcpy(to.data(), from.data(), kBlock);
    from[copied % kBlock] = to[(copied + 1) % kBlock];
    copied += kBlock;
  } while (Steady::now() - begin < time);
  return static_cast<double>(copied) / Seconds(Steady::now() - begin);
}

Check JudgeBandwidth(double bytes_per_s) {
  constexpr double kLeast = 1e9;
  Check check{.name = "memory-speed", .measured = {}, .limit = "1 GB/s or more", .advice = {}};
  check.measured = fmt::format("{:.1f} GB/s copied by one thread", bytes_per_s / 1e9);
  if (bytes_per_s < kLeast) {
    check.verdict = Verdict::kWarn;
    check.advice =
        "the machine is very busy, swaps, or a memory bank is slow: try again, see dmesg";
  }
  return check;
}

}  // namespace muster::agent::health
