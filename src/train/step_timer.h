#pragma once
// Where a step's time goes: one phase at a time, published to the heartbeat page as it is entered
// and summed for the step's record. Training thread.

#include <array>

#include "base/clock.h"
#include "os/heartbeat.h"

namespace muster::train {

class StepTimer {
 public:
  StepTimer(os::HeartbeatWriter& heartbeat, const Clock& clock)
      : heartbeat_(&heartbeat), clock_(&clock) {}

  void Begin();
  void Enter(os::Phase phase);
  /// Phase of the moment, to return to after a nested one.
  os::Phase phase() const { return phase_; }
  /// Ends the step; publishes its record.
  void Publish(std::uint64_t step, double loss);

 private:
  void Account(Instant now);

  os::HeartbeatWriter* heartbeat_;
  const Clock* clock_;
  os::Phase phase_ = os::Phase::kInit;
  Instant begin_;
  Instant since_;
  std::array<std::chrono::nanoseconds, os::kPhaseCount> spent_{};
};

}  // namespace muster::train
