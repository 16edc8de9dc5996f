#include "agent/stacks/take/take.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <csignal>

#include "agent/stacks/take/unwinder.h"

namespace muster::agent::stacks {
namespace {

constexpr auto kMostOfOne = std::chrono::milliseconds(100);
constexpr std::size_t kStacks = 256u << 20;  // of all threads together

bool SamePlace(const Thread& a, const Thread& b) {
  return a.name == b.name && a.native == b.native && a.python == b.python && a.missing == b.missing;
}

/// Pools of idle threads are one line.
void Add(std::vector<Thread>& threads, Thread thread) {
  const auto same =
      std::ranges::find_if(threads, [&](const Thread& other) { return SamePlace(other, thread); });
  if (same == threads.end()) {
    threads.push_back(std::move(thread));
  } else {
    same->tids.push_back(thread.tids.front());
  }
}

template <typename T>
bool ParseNumber(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::vector<Copied> Copy(const std::vector<Target>& targets, std::chrono::nanoseconds limit) {
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &child, nullptr);
  const Instant deadline = SystemClock().Now() + limit;
  std::vector<Copied> copied;
  std::size_t budget = kStacks;
  for (const Target& target : targets) {
    const auto interpreter = FindInterpreter(target.pid);
    const Instant now = SystemClock().Now();
    if (now > deadline) {
      copied.push_back(
          {target, {.pid = target.pid, .missing = "the time for stacks was over"}, {}});
      continue;
    }
    const Hold hold(target.pid, std::min(deadline, now + kMostOfOne));
    Copied one{target, hold.Copy(budget), {}};
    if (interpreter) one.python = ReadPython(target.pid, *interpreter);
    copied.push_back(std::move(one));
  }
  return copied;
}

std::vector<Process> Name(const std::vector<Copied>& copied, std::chrono::nanoseconds limit) {
  const Instant deadline = SystemClock().Now() + limit;
  Unwinder unwinder;
  std::vector<Process> processes;
  for (const Copied& one : copied) {
    Process process{.rank = one.target.rank,
                    .pid = one.target.pid,
                    .name = one.process.name,
                    .state = one.process.state,
                    .missing = one.process.missing,
                    .python_missing = one.python.missing};
    for (Thread& thread : unwinder.FramesOf(one.process, deadline)) {
      const auto python = one.python.frames.find(thread.tids.front());
      if (python != one.python.frames.end()) thread.python = python->second;
      Add(process.threads, std::move(thread));
    }
    processes.push_back(std::move(process));
  }
  return processes;
}

Result<std::vector<Target>> ParseTargets(const std::vector<std::string_view>& words) {
  std::vector<Target> targets;
  for (const std::string_view word : words) {
    Target target;
    const auto colon = word.find(':');
    if (colon == std::string_view::npos || !ParseNumber(word.substr(0, colon), &target.rank) ||
        !ParseNumber(word.substr(colon + 1), &target.pid) || target.pid < 1) {
      return Error(Code::kInvalid, fmt::format("'{}' is not RANK:PID", word));
    }
    targets.push_back(target);
  }
  return targets;
}

}  // namespace muster::agent::stacks
