#pragma once
// The host of `muster run` when it is a node of the job: its shim and workers outlive each process
// that leads the run, and the next one finds them as node/node_resume.cc does. Lives as long as the
// history.

#include <memory>
#include <optional>
#include <vector>

#include "agent/node/node_runner.h"
#include "agent/simulation/agent_model.h"

namespace muster::agent::simulation {

class HostModel {
 public:
  HostModel(Ground& ground, std::uint32_t ranks);

  /// The node of a life of the coordinator; with a `place` it follows another.
  std::unique_ptr<Node> Attach(OnReport on_report, const std::optional<NodePlace>& place);
  NodeModel& node() { return *node_; }
  /// Under which the run's record knows it.
  const std::string& name() const { return name_; }
  void KillShim();

 private:
  class View;
  void Take(const Order& order);
  void Hear(const Report& report);
  bool Deliver(const Report& report);
  void Resume(const NodePlace& place);

  Ground& ground_;
  Lifetime life_;
  const std::string name_;
  std::unique_ptr<NodeModel> node_;
  OnReport listener_;                  ///< of the coordinator that lives
  std::vector<report::Exited> exits_;  ///< since the last stop, told or not
  bool loss_heard_ = false;            ///< of the last shim that was lost
};

}  // namespace muster::agent::simulation
