#include "agent/stacks/take/held.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <sstream>

#include "base/file_system.h"

namespace muster::agent::stacks {
namespace {

constexpr std::uint64_t kRedZone = 128;
constexpr std::uint64_t kMostStack = 1 << 20;
constexpr int kRounds = 3;

std::string ReadSmall(const std::string& path) {
  auto text = PosixFiles().ReadAll(path, 64_KiB);
  if (!text) return {};
  while (text->ends_with('\n')) text->pop_back();
  return *text;
}

std::string StateOf(const std::string& folder) {
  const std::string stat = ReadSmall(folder + "/stat");
  const auto name = stat.rfind(')');  // the name may hold anything
  return name == std::string::npos || name + 2 >= stat.size() ? "" : stat.substr(name + 2, 1);
}

/// What it waits for in the kernel.
std::string WhereInKernel(const std::string& folder) {
  const std::string symbol = ReadSmall(folder + "/wchan");
  return symbol.empty() || symbol == "0" ? "" : " in " + symbol;
}

std::string WhyNotSeized(int error) {
  if (error == ESRCH) return "it is gone";
  return error == EPERM ? "a debugger has it, or tracing is not permitted" : std::strerror(error);
}

std::uint64_t Hex(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

}  // namespace

std::string ReadMemory(pid_t pid, std::uint64_t address, std::size_t size) {
  std::string bytes(size, '\0');
  const iovec here{bytes.data(), size};
  const iovec there{reinterpret_cast<void*>(address), size};  // NOLINT: of the other process
  const ssize_t n = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
  bytes.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return bytes;
}

std::optional<std::uint64_t> ReadWord(pid_t pid, std::uint64_t address) {
  const std::string bytes = ReadMemory(pid, address, sizeof(std::uint64_t));
  std::uint64_t word = 0;
  if (bytes.size() != sizeof(word)) return std::nullopt;
  std::memcpy(&word, bytes.data(), sizeof(word));
  return word;
}

std::vector<Mapping> MapsOf(pid_t pid) {
  std::vector<Mapping> maps;
  const auto text = PosixFiles().ReadAll(fmt::format("/proc/{}/maps", pid), 16_MiB);
  if (!text) return maps;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string range, rights, offset, device;
    Mapping map;
    fields >> range >> rights >> offset >> device >> map.inode;
    const auto dash = range.find('-');
    if (!fields || dash == std::string::npos) continue;
    map.begin = Hex(std::string_view(range).substr(0, dash));
    map.end = Hex(std::string_view(range).substr(dash + 1));
    map.offset = Hex(offset);
    map.executable = rights.size() > 2 && rights[2] == 'x';
    std::getline(fields >> std::ws, map.path);
    maps.push_back(std::move(map));
  }
  return maps;
}

std::uint64_t StackPointer(const HeldThread& thread) {
#if defined(__x86_64__)
  return thread.registers.rsp;
#elif defined(__aarch64__)
  return thread.registers.sp;
#else
#error "say where the stack pointer is"
#endif
}

Hold::Hold(pid_t pid, Instant deadline) : pid_(pid), state_(StateOf(fmt::format("/proc/{}", pid))) {
  // A thread may be made while the others are being stopped.
  for (int round = 0; round < kRounds && SeizeNew(); ++round) AwaitStops(deadline);
}

bool Hold::SeizeNew() {
  const auto names = PosixFiles().List(fmt::format("/proc/{}/task", pid_));
  if (!names || names->empty()) missing_ = "it is gone";
  bool any = false;
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    pid_t tid = 0;
    std::from_chars(name.data(), name.data() + name.size(), tid);
    if (std::ranges::find(tracees_, tid, &Tracee::tid) != tracees_.end()) continue;
    Tracee tracee{.tid = tid};
    if (::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) < 0 ||
        ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) < 0) {
      tracee.missing = WhyNotSeized(errno);
    }
    any = any || tracee.missing.empty();
    tracees_.push_back(std::move(tracee));
  }
  return any;
}

void Hold::AwaitStops(Instant deadline) {
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  for (;;) {
    int status = 0;
    for (pid_t tid = 0; (tid = ::waitpid(-1, &status, __WALL | WNOHANG)) > 0;) Note(tid, status);
    const bool all = std::ranges::all_of(
        tracees_, [](const Tracee& tracee) { return tracee.stopped || !tracee.missing.empty(); });
    const auto left = deadline - SystemClock().Now();
    if (all) return;
    if (left <= left.zero()) break;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec limit{seconds.count(), (left - seconds).count()};
    ::sigtimedwait(&child, nullptr, &limit);
  }
  for (Tracee& tracee : tracees_) {
    if (tracee.stopped || !tracee.missing.empty()) continue;
    const std::string folder = fmt::format("/proc/{}/task/{}", pid_, tracee.tid);
    tracee.missing = StateOf(folder) == "D"
                         ? "it is in the kernel (state D)" + WhereInKernel(folder)
                         : "it did not stop in time";
  }
}

void Hold::Note(pid_t tid, int status) {
  const auto tracee = std::ranges::find(tracees_, tid, &Tracee::tid);
  if (tracee == tracees_.end()) return;
  if (!WIFSTOPPED(status)) {
    tracee->missing = "it is gone";
    return;
  }
  tracee->stopped = true;
  const bool by_us = status >> 16 == PTRACE_EVENT_STOP;
  tracee->signal = by_us ? 0 : WSTOPSIG(status);
}

Hold::~Hold() {
  for (const Tracee& tracee : tracees_) {
    if (tracee.stopped) ::ptrace(PTRACE_DETACH, tracee.tid, nullptr, tracee.signal);
  }
}

HeldProcess Hold::Copy(std::size_t& budget) const {
  const std::string folder = fmt::format("/proc/{}", pid_);
  HeldProcess process{.pid = pid_,
                      .name = ReadSmall(folder + "/comm"),
                      .state = state_,
                      .missing = missing_,
                      .maps = MapsOf(pid_),
                      .threads = {}};
  for (const Tracee& tracee : tracees_) {
    HeldThread thread{.tid = tracee.tid,
                      .name = ReadSmall(fmt::format("{}/task/{}/comm", folder, tracee.tid)),
                      .missing = tracee.missing,
                      .registers = {},
                      .stack_at = 0,
                      .stack = {}};
    iovec registers{&thread.registers, sizeof(thread.registers)};
    if (tracee.stopped && ::ptrace(PTRACE_GETREGSET, tracee.tid, NT_PRSTATUS, &registers) == 0) {
      thread.stack_at = StackPointer(thread) - kRedZone;
      const auto map = std::ranges::find_if(process.maps, [&](const Mapping& candidate) {
        return candidate.begin <= thread.stack_at + kRedZone &&
               thread.stack_at + kRedZone < candidate.end;
      });
      const std::uint64_t end = map == process.maps.end() ? thread.stack_at : map->end;
      const std::size_t size =
          std::min({end - thread.stack_at, kMostStack, static_cast<std::uint64_t>(budget)});
      thread.stack = ReadMemory(pid_, thread.stack_at, size);
      budget -= thread.stack.size();
    } else if (tracee.stopped) {
      thread.missing = "its registers cannot be read";
    }
    process.threads.push_back(std::move(thread));
  }
  const auto main = std::ranges::find(process.threads, pid_, &HeldThread::tid);
  if (main != process.threads.end()) std::rotate(process.threads.begin(), main, main + 1);
  return process;
}

}  // namespace muster::agent::stacks
