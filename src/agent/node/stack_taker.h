#pragma once
// One call of muster-stacks at a time, started by the shim (which workers let trace them) and heard
// through a pipe. Owner: the node's loop. The callback comes at most twice a call: when the
// processes may be killed, and with the stacks, or with why there are none.

#include <functional>
#include <string>
#include <vector>

#include "agent/launch/shim_client.h"
#include "agent/stacks/stacks.h"
#include "base/fd.h"
#include "os/event_loop.h"

namespace muster::agent {

class StackTaker {
 public:
  struct Said {
    bool taken = false;  ///< and no more yet
    std::string json;    ///< stacks/stacks.h
  };
  using OnSaid = std::function<void(const Said&)>;

  explicit StackTaker(os::EventLoop& loop) : loop_(loop) {}
  ~StackTaker() { Drop(); }
  StackTaker(const StackTaker&) = delete;
  StackTaker& operator=(const StackTaker&) = delete;

  /// Whom to look at: rank and pid. `program` is the path of muster-stacks.
  void Take(const std::string& program, const std::vector<stacks::Process>& targets,
            ShimClient& shim, OnSaid on_said);
  /// The call under way is not heard any more.
  void Drop();

 private:
  Status Start(const std::string& program, ShimClient& shim);
  void Read();
  void End(const std::string& why);

  os::EventLoop& loop_;
  std::vector<stacks::Process> targets_;
  OnSaid on_said_;
  Fd pipe_;
  std::optional<os::WatchId> watch_;
  std::optional<os::TimerId> limit_;
  std::string text_;
  bool taken_ = false;
};

}  // namespace muster::agent
