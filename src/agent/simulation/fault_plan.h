#pragma once
// What goes wrong in a history, and when: drawn from its seed before it begins, and carried out on
// the world's clock until faults stop. What strikes is chosen then.

#include <memory>
#include <string>
#include <vector>

#include "agent/simulation/agent_model.h"

namespace muster::agent::simulation {

class FaultPlan {
 public:
  FaultPlan(Ground& ground, std::vector<std::unique_ptr<AgentModel>>& agents);

  /// From now on things go wrong, until `until` passed; then `calm` is called.
  void Begin();
  nanoseconds until() const { return until_; }
  bool any() const { return any_; }
  bool rough() const { return rough_; }  ///< the network too
  std::string Describe() const;

 private:
  void DrawWeather();
  void Strike();
  void StrikeWorker(AgentModel& agent);
  void StrikeNetwork(AgentModel& agent);
  void Calm();

  Ground& ground_;
  std::vector<std::unique_ptr<AgentModel>>& agents_;
  Lifetime life_;
  nanoseconds until_{};
  std::uint64_t strikes_ = 0;
  bool any_ = false;
  bool rough_ = false;
  bool interrupts_ = false;
  double coordinator_ = 0;  ///< dies, with each of its steps
  Weather weather_;
};

}  // namespace muster::agent::simulation
