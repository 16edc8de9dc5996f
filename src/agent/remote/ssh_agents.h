#pragma once
// Agents of other hosts, started by ssh: one child process a host, which runs `muster agent` there.
// The agent gets its token, and the variables of ours that its workers need, by its standard input,
// which stays open as its lifeline: it leaves when we are gone. What it prints comes through ssh.
// Lifelines are kept (keep/): another process of the run takes the sessions over.
//
// The coordinator's loop thread only.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/keep/kept.h"
#include "base/fd.h"
#include "os/event_loop.h"
#include "os/process.h"

namespace muster::agent {

/// One that was started.
struct SshPlace {
  std::string host;
  bool ended = false;
  int pid = 0;
};

/// "NAME=value" in the environment of every ssh of a run, and of what it starts here: no process of
/// the job's, though a child of its coordinator.
std::string SshMark(const std::string& run_id);

struct SshOptions {
  std::vector<std::string> ssh;  ///< the program and its options; found in PATH
  std::vector<std::string> hosts;
  std::string muster;  ///< its path over there
  std::string url;     ///< to join at
  std::string token;
  std::string mark;
  std::vector<std::string> environment;  ///< "NAME=value", for workers
  Kept* kept = nullptr;                  ///< outlives them
  std::optional<std::vector<SshPlace>> place{};
};

class SshAgents {
 public:
  /// Without an exit: it was no child of this process.
  using OnEnd = std::function<void(const std::string& host, const std::optional<os::Exit>& exit)>;

  /// Starts one a host, or takes over those of a place. NotFound: there is no such ssh. `on_end`
  /// hears of every ssh that ends, also when all is well.
  static Result<std::unique_ptr<SshAgents>> Start(os::EventLoop& loop, const SshOptions& options,
                                                  OnEnd on_end);
  /// Once more in a moment, on a host whose ssh has ended.
  void StartAgain(const std::string& host);
  std::vector<SshPlace> place() const;
  /// Of those that run.
  std::vector<int> pids() const;
  /// Lets go of the lifelines and waits a moment for the agents to leave.
  ~SshAgents();

 private:
  struct Host {
    std::string name;
    Fd lifeline;
    os::Process process;
    os::WatchId watch{};
    bool ended = false;
    bool ours = true;  ///< our child: it tells how it ended
  };
  SshAgents(os::EventLoop& loop, SshOptions options, std::string program, OnEnd on_end)
      : loop_(loop),
        options_(std::move(options)),
        program_(std::move(program)),
        on_end_(std::move(on_end)) {}
  Status StartOne(const std::string& host);
  Status TakeOver(const std::vector<SshPlace>& place);
  Status Hold(Host host);
  void Reap(std::size_t index);

  os::EventLoop& loop_;
  const SshOptions options_;
  const std::string program_;
  OnEnd on_end_;
  std::vector<Host> hosts_;  ///< every ssh that was started
  std::vector<os::TimerId> again_;
};

/// What an agent finds on its standard input when it was started by ssh.
struct Handover {
  std::string token;
  std::vector<std::string> environment;
};
/// Reads it and nothing behind it. Invalid: something else, or an end, came first.
Result<Handover> ReadHandover(int fd);

/// Of `environ` what a worker on another host needs to be like one here: paths and the settings of
/// Python, torch and their libraries; not what belongs to this host or session.
std::vector<std::string> VariablesForNodes(const std::vector<std::string>& environ);

}  // namespace muster::agent
