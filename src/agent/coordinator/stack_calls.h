#pragma once
// Calls for the stacks of a job's ranks: what the nodes answer, put together. One call is under way
// at a time; who calls meanwhile gets the same answer. Who does not answer in time is said to be
// missing. Owner: the run loop.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/stacks/stacks.h"
#include "base/strong_id.h"
#include "os/event_loop.h"

namespace muster::agent {

class StackCalls {
 public:
  using Send = std::function<void(std::uint64_t id)>;
  using OnTaken = std::function<void()>;
  using OnNamed = std::function<void(const std::vector<stacks::Process>&)>;

  /// `send` asks the nodes.
  StackCalls(os::EventLoop& loop, Send send) : loop_(loop), send_(std::move(send)) {}

  /// Of these ranks. `on_taken`: copies were made, or a second has passed: they may be killed.
  /// `on_named` comes later, in the order of ranks.
  void Call(const std::vector<Rank>& ranks, OnTaken on_taken, OnNamed on_named);
  bool pending() const { return id_ != 0; }

  // What the nodes say.
  void Taken(std::uint64_t id, const std::vector<Rank>& ranks);
  void Named(std::uint64_t id, const std::vector<Rank>& ranks, const std::string& json);

 private:
  struct Answer {
    bool taken = false;
    std::optional<stacks::Process> process;
  };
  void EndTaking();
  void EndNaming();

  os::EventLoop& loop_;
  Send send_;
  std::uint64_t id_ = 0;  ///< of the call under way; 0: none is
  std::uint64_t last_id_ = 0;
  bool taken_ = false;
  std::map<Rank, Answer> answers_;
  std::vector<OnTaken> on_taken_;
  std::vector<OnNamed> on_named_;
  std::optional<os::TimerId> taking_, naming_;
};

}  // namespace muster::agent
