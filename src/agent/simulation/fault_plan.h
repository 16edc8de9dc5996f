#pragma once
// What goes wrong in a history, and when: drawn from its seed before it begins, and carried out on
// the world's clock until faults stop. What strikes is chosen then.

#include <memory>
#include <string>
#include <vector>

#include "agent/simulation/host_model.h"

namespace muster::agent::simulation {

class FaultPlan {
 public:
  /// `host`: the coordinator's, a node of the job too; null: it is none.
  FaultPlan(Ground& ground, std::vector<std::unique_ptr<AgentModel>>& agents, HostModel* host);

  /// From now on things go wrong, until `until` passed; then `calm` is called.
  void Begin();
  nanoseconds until() const { return until_; }
  bool any() const { return any_; }
  bool rough() const { return rough_; }  ///< the network too
  std::string Describe() const;

 private:
  void DrawWeather();
  void Strike();
  void StrikeAgent(AgentModel& agent);
  void StrikeWorker(NodeModel& node, const std::string& name);
  void StrikeNetwork(AgentModel& agent);
  void Calm();

  Ground& ground_;
  std::vector<std::unique_ptr<AgentModel>>& agents_;
  HostModel* const host_;
  Lifetime life_;
  nanoseconds until_{};
  std::uint64_t strikes_ = 0;
  bool any_ = false;
  bool rough_ = false;
  bool interrupts_ = false;
  double coordinator_ = 0;  ///< dies, with each of its steps
  double shim_ = 0;         ///< of its host dies, with each of its steps
  Weather weather_;
};

}  // namespace muster::agent::simulation
