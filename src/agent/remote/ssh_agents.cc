#include "agent/remote/ssh_agents.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/write_all.h"
#include "os/wait_fd.h"
#include "profile/report/go_on.h"
#include "spec/env.h"

namespace muster::agent {
namespace {

constexpr auto kLeave = std::chrono::seconds(5);
constexpr auto kAgain = std::chrono::seconds(5);
constexpr int kPipeBytes = 1 << 20;
constexpr std::size_t kMostLine = 1 << 20;

std::string NameOf(std::size_t index) { return fmt::format("ssh.{}", index); }

/// Byte by byte: what follows is not ours to take.
Result<std::string> ReadLine(int fd) {
  std::string line;
  for (;;) {
    char byte = 0;
    const ssize_t got = ::read(fd, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1 || line.size() > kMostLine) {
      return Error(Code::kInvalid, "standard input is not what muster run sends by ssh",
                   "give --token-file a file");
    }
    if (byte == '\n') return line;
    line += byte;
  }
}

}  // namespace

std::string SshMark(const std::string& run_id) { return "MUSTER_SSH=" + run_id; }

Result<Handover> ReadHandover(int fd) {
  Handover handover{.token = MUSTER_TRY(ReadLine(fd))};
  const auto json = nlohmann::json::parse(MUSTER_TRY(ReadLine(fd)), nullptr, false);
  const bool whole = json.is_array() && std::ranges::all_of(json, [](const auto& entry) {
                       return entry.is_string() &&
                              entry.template get<std::string>().find('=') != std::string::npos;
                     });
  if (!whole) return Error(Code::kInvalid, "what came behind the token is no environment");
  for (const auto& entry : json) handover.environment.push_back(entry.get<std::string>());
  return handover;
}

std::vector<std::string> VariablesForNodes(const std::vector<std::string>& environ) {
  constexpr std::string_view kNames[] = {"PATH",        "LD_LIBRARY_PATH", "LD_PRELOAD",
                                         "VIRTUAL_ENV", "CONDA_PREFIX",    "LANG"};
  constexpr std::string_view kPrefixes[] = {"PYTHON", "TORCH", "NCCL_",  "GLOO_", "OMP_",   "MKL_",
                                            "KMP_",   "CUDA_", "CUBLAS", "HF_",   "WANDB_", "LC_"};
  std::vector<std::string> kept;
  for (const std::string& line : environ) {
    const std::string_view name = std::string_view(line).substr(0, line.find('='));
    const bool wanted =
        std::ranges::find(kNames, name) != std::end(kNames) ||
        std::ranges::any_of(kPrefixes, [&](std::string_view p) { return name.starts_with(p); });
    if (wanted) kept.push_back(line);
  }
  return kept;
}

Result<std::unique_ptr<SshAgents>> SshAgents::Start(os::EventLoop& loop, const SshOptions& options,
                                                    OnEnd on_end) {
  const auto path = spec::ProcessEnv()("PATH").value_or("/usr/bin:/bin");
  const std::string program = MUSTER_TRY(os::FindProgram(options.ssh.at(0), path));
  std::unique_ptr<SshAgents> agents(new SshAgents(loop, options, program, std::move(on_end)));
  if (options.place) {
    MUSTER_TRY(agents->TakeOver(*options.place));
    return agents;
  }
  for (const std::string& host : options.hosts) {
    MUSTER_TRY(agents->StartOne(host));
  }
  return agents;
}

Status SshAgents::StartOne(const std::string& host) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) return ErrnoError("pipe", errno);
  const Fd input(ends[0]);
  Fd lifeline(ends[1]);
  const SshOptions& options = options_;
  std::vector<std::string> words = options.ssh;
  words.push_back(host);
  // One word: ssh hands it to the shell over there.
  words.push_back(fmt::format("{} agent --join {} --token-file - --name {}",
                              profile::ShellWord(options.muster), profile::ShellWord(options.url),
                              profile::ShellWord(host.substr(host.find('@') + 1))));
  // Ctrl-C is ours to understand: it does not reach ssh.
  auto process = MUSTER_TRY(
      os::Spawn({.program = program_,
                 .arguments = words,
                 .environment = spec::MergeEnviron(spec::ProcessEnviron(), {options.mark}),
                 .descriptors = {{input.get(), 0}, {1, 1}, {2, 2}},
                 .new_session = true}));
  const std::string first =
      fmt::format("{}\n{}\n", options.token,
                  nlohmann::json(options.environment)
                      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  // One write into an empty pipe: whoever does not read must not hold us.
  ::fcntl(lifeline.get(), F_SETPIPE_SZ, kPipeBytes);
  ::fcntl(lifeline.get(), F_SETFL, O_NONBLOCK);
  if (const Written written = WriteAll(lifeline.get(), AsBytes(first)); written.error != 0) {
    return ErrnoError(fmt::format("hand {} bytes to ssh {}", first.size(), host), written.error);
  }
  options_.kept->Keep(NameOf(hosts_.size()), {lifeline.get(), process.pidfd()});
  return Hold({host, std::move(lifeline), std::move(process)});
}

Status SshAgents::Hold(Host host) {
  const std::size_t index = hosts_.size();
  if (!host.ended) {
    host.watch = MUSTER_TRY(
        loop_.Watch(host.process.pidfd(), EPOLLIN, [this, index](std::uint32_t) { Reap(index); }));
  }
  hosts_.push_back(std::move(host));
  return Ok();
}

/// They are children of the supervisor now. One that ended in the meantime is found to have at
/// once.
Status SshAgents::TakeOver(const std::vector<SshPlace>& place) {
  for (const SshPlace& was : place) {
    std::vector<Fd> kept = options_.kept->Take(NameOf(hosts_.size()));
    const bool there = !was.ended && kept.size() == 2;
    Host host{was.host, Fd(), os::Process(0, Fd())};
    host.ended = !there;
    host.ours = false;
    if (there) {
      host.lifeline = std::move(kept[0]);
      host.process = os::Process(was.pid, std::move(kept[1]));
    }
    MUSTER_TRY(Hold(std::move(host)));
    if (!there) StartAgain(was.host);
  }
  return Ok();
}

std::vector<SshPlace> SshAgents::place() const {
  std::vector<SshPlace> place;
  for (const Host& host : hosts_) place.push_back({host.name, host.ended, host.process.pid()});
  return place;
}

std::vector<int> SshAgents::pids() const {
  std::vector<int> pids;
  for (const Host& host : hosts_) {
    if (!host.ended) pids.push_back(host.process.pid());
  }
  return pids;
}

void SshAgents::StartAgain(const std::string& host) {
  again_.push_back(loop_.After(kAgain, [this, host] { static_cast<void>(StartOne(host)); }));
}

void SshAgents::Reap(std::size_t index) {
  Host& host = hosts_[index];
  if (host.ended) return;
  std::optional<os::Exit> exit;
  if (host.ours) {
    const auto polled = host.process.Poll();
    if (polled && !*polled) return;
    exit = polled ? **polled : os::Exit{.code = 255};
  }
  host.ended = true;
  loop_.Remove(host.watch);
  options_.kept->Drop(NameOf(index));
  const std::string name = host.name;
  on_end_(name, exit);
}

SshAgents::~SshAgents() {
  for (const os::TimerId timer : again_) loop_.Remove(timer);
  for (std::size_t i = 0; i < hosts_.size(); ++i) options_.kept->Drop(NameOf(i));
  for (Host& host : hosts_) host.lifeline.Reset();
  const Instant deadline = MonotonicClock::now() + kLeave;
  for (const Host& host : hosts_) {
    if (host.ended) continue;
    loop_.Remove(host.watch);
    const auto left = std::max(std::chrono::nanoseconds(0), deadline - MonotonicClock::now());
    const auto ended = os::WaitFd(host.process.pidfd(), POLLIN, left);
    if (!ended || !*ended) static_cast<void>(host.process.Send(SIGKILL));
    if (host.ours) static_cast<void>(host.process.Wait(kLeave));
  }
}

}  // namespace muster::agent
