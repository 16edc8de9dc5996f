#pragma once
// The zygote: a process that has loaded what its workers need (libtorch) and is copied for each of
// them, so that a restart costs a fork and not a load. It is a program's own main turned around:
//
//   int main(int argc, char** argv) {
//     if (const auto fd = agent::ZygoteFd(argc, argv)) return agent::RunZygote(*fd, &TrainMain);
//     return TrainMain(argc, argv);
//   }
//
// The shim starts it as `PROGRAM --zygote FD` and sends one packet a worker (shim/protocol.h) over
// that socketpair; nobody else can reach it, because a request is code execution. It answers with
// the copy's pid and pidfd. The copy has the shim as parent and lives in its own session, with the
// environment, folder, limits and descriptors of the request and nothing else of the zygote's.
//
// Single-threaded, and it must stay so: a request that finds a second thread is refused with EBUSY
// and the shim's controller starts that worker by exec. Never run a parallel region in here: every
// copy would hang in its first one.

#include <optional>

namespace muster::agent {

/// The worker's program: gets the argv of its command, `environ` set to its environment. Its value
/// is the exit code; it ends by exit(3), so that atexit handlers run.
using WorkerMain = int (*)(int argc, char** argv);

/// The descriptor of `PROGRAM --zygote FD`; nothing for every other command line.
std::optional<int> ZygoteFd(int argc, char** argv);

/// Serves requests until the shim closes the socket. Returns the exit code of the zygote; in a copy
/// it does not return.
int RunZygote(int fd, WorkerMain main);

}  // namespace muster::agent
