#pragma once
// muster-shim: the parent of every worker of one job on one node. It starts them (by its zygote or
// by exec), sees them die through pidfds, forwards signals, and ends everything below itself, when
// told to or when its controller vanishes. It decides nothing else.
//
// Single-threaded, libc only, no malloc, no blocking call but poll. Every packet it sends is
// derived from the state of a worker slot, so a controller that does not read costs no memory.
// Protocol: protocol.h. An error of one request is answered; an error of the shim itself ends the
// job.

#include <poll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>

#include "agent/shim/child.h"
#include "agent/shim/job_cgroup.h"
#include "agent/shim/protocol.h"
#include "agent/shim/wire.h"

namespace muster::agent::shim {

struct ShimOptions {
  int control_fd = -1;
  const char* id = "";               ///< of the run; names the cgroup
  std::int64_t orphan_grace_ns = 0;  ///< between TERM and KILL when the controller is gone
  std::uint64_t soft_nofile = 0;     ///< RLIMIT_NOFILE of workers; 0: what we found
};

struct Worker {
  /// kQueued: the zygote has enough to do. kForking: its answer is awaited. kTold: its end was
  /// reported, and is kept for another controller while the slot is not needed.
  enum class State : std::uint8_t { kFree, kQueued, kForking, kRunning, kDead, kTold };
  State state = State::kFree;
  bool report_start = false;
  bool report_exit = false;
  bool forked = false;
  std::int64_t killed_ns = 0;  ///< when SIGKILL was sent; 0: it was not
  int pidfd = -1;
  int logs[2] = {-1, -1};  ///< read ends of its pipes
  Packet request{};        ///< kQueued: what asked for it
  std::uint64_t fork_request = 0;
  Started started{};
  Exited exited{};
};

class Shim {
 public:
  /// Runs until the job is over; the value is the exit code of the program.
  int Run(const ShimOptions& options);

 private:
  enum class Ending : std::uint8_t { kNo, kTerm, kKill };

  // shim.cc: the loop and the protocol
  bool SetUp(const ShimOptions& options);
  void ProbeCgroup();
  struct Ready;
  void Poll();
  int PollTimeoutMs() const;
  void Dispatch(const Ready& ready);
  void ReceiveControl();
  void HandleControl(Packet* packet);
  void TakeStop(const Stop& stop);
  void TellAgain();
  void ReceiveZygote();
  void Report();
  bool Send(const void* message, std::size_t size);
  void DrainSignals();

  // spawning.cc: children come and go
  void StartZygote(Packet* packet);
  bool ExecZygote(Packet* packet);
  void StartWorker(Packet* packet);
  void StartHelper(const Packet& packet);
  void Refuse(const Spawn& spawn, int error);
  void FailStart(Worker* worker, int error);
  void SendForks();
  int ForkFromZygote(Worker* worker);
  int ExecWorker(const Spawn& spawn, Worker* worker, const Packet& packet);
  void TakeForked(const Forked& reply, Packet* packet);
  void ReapWorker(Worker* worker);
  void ReapZygote();
  void ReapStrays();
  void WatchZygote();
  void LoseZygote(int error = ESRCH);
  void FailForks(Worker::State state, int error);
  Worker* FreeSlot();

  // ending.cc: how everything ends
  void SignalWorkers(const Signal& signal);
  void BeginStop(int signal, std::int64_t grace_ns);
  void BeginKill();
  void ContinueEnding();
  bool NothingLeft();
  std::uint32_t CountInState(Worker::State state) const;
  bool AnyInState(Worker::State state) const { return CountInState(state) > 0; }
  bool AnyUsesGrace() const;
  std::uint32_t CountUndying() const;
  void ControllerGone();

  int control_ = -1;
  int signals_ = -1;
  int zygote_socket_ = -1;
  int zygote_pidfd_ = -1;
  pid_t zygote_ = 0;
  pid_t helper_ = 0;  ///< the last one that was started
  bool report_hello_ = true;
  bool report_zygote_ = false;
  bool report_stopped_ = false;
  bool report_synced_ = false;
  bool blocked_ = false;  ///< the control socket is full; wait for POLLOUT
  bool leaving_ = false;  ///< goodbye, or no controller any more: exit when nothing is left
  Ending ending_ = Ending::kNo;
  int stop_signal_ = 15;
  std::uint64_t resync_ = 0;           ///< the newest request
  std::uint64_t stop_generation_ = 0;  ///< of the newest Stop
  std::int64_t orphan_grace_ns_ = 0;
  std::int64_t deadline_ns_ = 0;    ///< kTerm: when to kill
  std::int64_t kill_began_ns_ = 0;  ///< kKill: when it began
  std::uint64_t next_request_ = 1;
  bool zygote_served_ = false;       ///< this one answered: it has loaded what it needs
  std::int64_t watched_ns_ = 0;      ///< when WatchZygote looked last
  std::int64_t zygote_mute_ns_ = 0;  ///< how long it owes an answer
  std::uint32_t left_ = 0;           ///< processes that the last round of killing met
  ErrorPage errors_{};
  struct rlimit nofile_{};
  Zygote zygote_report_{};
  Stopped stopped_{};
  JobCgroup cgroup_{};
  Packet packet_{};
  Worker workers_[kMaxWorkers] = {};
};

std::int64_t NowNs();
int PidfdSignal(int pidfd, int signal);

}  // namespace muster::agent::shim
