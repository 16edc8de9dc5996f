#pragma once
// The controller's end of the shim: starts muster-shim and speaks shim/protocol.h with it over a
// socketpair. Closing it without Goodbye makes the shim end the job. Single owner thread.

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/shim/protocol.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "os/process.h"

namespace muster::agent {

using ShimMessage = std::variant<shim::Hello, shim::Zygote, shim::Started, shim::Exited,
                                 shim::Stopped, shim::Synced>;

/// The descriptors of a worker. Borrowed: the shim gets duplicates.
struct WorkerFds {
  int command = -1;
  int input = -1;
  int out = -1;  ///< write ends
  int err = -1;
  int out_read = -1;  ///< read ends, which the shim holds too
  int err_read = -1;
  std::vector<int> extra;  ///< 3, 4, … in the worker
};

struct WorkerStart {
  std::uint64_t generation = 0;
  std::uint32_t rank = 0;
  bool via_zygote = false;
  std::uint32_t umask = 022;
};

struct ShimStart {
  std::string program;                     ///< path of muster-shim
  std::string id;                          ///< names the cgroup
  std::chrono::milliseconds orphan_grace;  ///< what workers get between TERM and KILL when we die
  std::uint64_t soft_nofile = 0;           ///< RLIMIT_NOFILE of workers; 0: ours
};

class ShimClient {
 public:
  static Result<ShimClient> Start(const ShimStart& start);

  /// That of a process before this one.
  static ShimClient Adopt(Fd socket, Fd pidfd);
  /// Asks it for all that it knows (shim::Resync). `request`: another one for each process, for
  /// answers to one that died may come first.
  Status Resync(std::uint64_t request);

  /// Waits until the shim has set itself up.
  Result<ShimMessage> AwaitHello();

  int fd() const { return socket_.get(); }
  const os::Process& process() const { return process_; }
  /// It closed its socket: it is dead, or about to be.
  bool gone() const;

  Status StartZygote(const WorkerFds& fds, std::uint32_t umask);
  Status StartWorker(const WorkerStart& start, const WorkerFds& fds);
  /// To one rank, or to all; `only_if_caught`: of them those that have a handler.
  Status Signal(int signal, std::uint32_t rank = shim::kAllRanks, bool only_if_caught = false);
  Status Stop(Generation generation, int signal, std::chrono::nanoseconds grace);
  Status Goodbye();
  /// A program beside the workers, which may trace them. It shows by what it writes to `fds.out`.
  Status StartHelper(const WorkerFds& fds);

  /// The next message, or nothing when none waits. Unavailable when the shim is gone.
  Result<std::optional<ShimMessage>> Receive();

 private:
  ShimClient(Fd socket, os::Process process)
      : socket_(std::move(socket)), process_(std::move(process)) {}
  Status Send(const void* message, std::size_t size, const std::vector<int>& fds);
  template <typename T>
  Status Send(const T& message, const std::vector<int>& fds = {}) {
    return Send(&message, sizeof(message), fds);
  }

  Fd socket_;
  os::Process process_;
};

}  // namespace muster::agent
