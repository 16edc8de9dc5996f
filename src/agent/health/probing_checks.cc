// The checks that ask the kernel or another program for something: a control group, a connection, a
// Python.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "agent/health/measuring_checks.h"
#include "agent/shim/job_cgroup.h"
#include "base/fd.h"
#include "base/text.h"
#include "os/process.h"
#include "os/wait_fd.h"

namespace muster::agent::health {
namespace {

using Verdict = Check::Verdict;

Status TryLoopback() {
  const Fd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listening.valid()) return ErrnoError("socket", errno);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  if (::bind(listening.get(), any, size) != 0) return ErrnoError("bind 127.0.0.1", errno);
  if (::listen(listening.get(), 1) != 0) return ErrnoError("listen", errno);
  if (::getsockname(listening.get(), any, &size) != 0) return ErrnoError("getsockname", errno);
  const Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!client.valid()) return ErrnoError("socket", errno);
  if (::connect(client.get(), any, size) != 0) return ErrnoError("connect to 127.0.0.1", errno);
  if (!MUSTER_TRY(os::WaitFd(listening.get(), POLLIN, std::chrono::seconds(1))))
    return Error(Code::kDeadline, "127.0.0.1 accepts no connection within a second");
  const Fd server(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!server.valid()) return ErrnoError("accept", errno);
  const char sent = 'm';
  if (::send(client.get(), &sent, 1, MSG_NOSIGNAL) != 1) return ErrnoError("send", errno);
  if (!MUSTER_TRY(os::WaitFd(server.get(), POLLIN, std::chrono::seconds(1))))
    return Error(Code::kDeadline, "a byte through 127.0.0.1 does not arrive within a second");
  return Ok();
}

struct Said {
  os::Exit exit;
  std::string text;
};

/// Runs the program to its end; its stdout is kept up to a page.
Result<Said> Run(const os::SpawnOptions& base, std::chrono::seconds most) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoError("pipe", errno);
  const Fd read(ends[0]);
  Fd write(ends[1]);
  os::SpawnOptions options = base;
  options.descriptors = {{.from = write.get(), .to = STDOUT_FILENO}};
  const os::Process process = MUSTER_TRY(os::Spawn(options));
  write = Fd();
  const auto exit = MUSTER_TRY(process.Wait(most));
  if (!exit) {
    (void)process.Send(SIGKILL);
    (void)process.Wait(std::chrono::seconds(1));
    return Error(Code::kDeadline, fmt::format("it is not done after {} s", most.count()));
  }
  Said said{.exit = *exit, .text = std::string(4096, '\0')};
  // What it started may still hold the pipe.
  const bool any = MUSTER_TRY(os::WaitFd(read.get(), POLLIN, std::chrono::nanoseconds(0)));
  const ssize_t size = any ? ::read(read.get(), said.text.data(), said.text.size()) : 0;
  said.text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return said;
}

}  // namespace

Check CheckJobCgroup(const std::string& id) {
  Check check{.name = "cgroup", .measured = {}, .limit = "a group a job", .advice = {}};
  shim::JobCgroup group;
  if (group.Make(id.c_str())) {
    check.measured = "a job's group can be made";
    group.Remove();
    return check;
  }
  check.verdict = Verdict::kWarn;
  check.measured = "no control group can be made here";
  check.advice =
      "jobs run, and what they start is ended process by process; for one group a job: "
      "Delegate=yes of the unit, or a writable cgroup v2 of the container";
  return check;
}

Check CheckLoopback() {
  Check check{
      .name = "loopback", .measured = "a byte through 127.0.0.1", .limit = {}, .advice = {}};
  const Status tried = TryLoopback();
  if (tried) return check;
  check.verdict = Verdict::kFail;
  check.measured = tried.error().message();
  check.advice = "ip link set lo up, or a firewall rule that lets lo through: ranks meet there";
  return check;
}

Check CheckPython(const std::string& python, const std::vector<std::string>& environment,
                  std::chrono::seconds most) {
  Check check{.name = "python", .measured = {}, .limit = "it imports torch", .advice = {}};
  const auto said =
      Run({.program = python,
           .arguments = {python, "-c",
                         "import sys; print(sys.version.split()[0], flush=True); import torch; "
                         "print(torch.__version__, torch.cuda.device_count())"},
           .environment = environment},
          most);
  if (!said) {
    check.verdict = Verdict::kFail;
    check.measured = said.error().message();
    check.advice = "name a Python that runs: --python VENV/bin/python";
    return check;
  }
  std::string text = PlainLine(said->text);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  if (said->exit.ok()) {
    check.measured = fmt::format("Python and torch {}; the last number is of its GPUs", text);
    return check;
  }
  check.verdict = Verdict::kWarn;
  check.measured = text.empty()
                       ? Describe(said->exit)
                       : fmt::format("Python {}, no torch ({})", text, Describe(said->exit));
  check.advice = "pip install torch there, or name another Python; scripts without torch run";
  return check;
}

}  // namespace muster::agent::health
