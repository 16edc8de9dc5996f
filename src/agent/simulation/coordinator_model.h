#pragma once
// The process that leads the run, life after life: each is the real RunLoop, with what the one
// before had saved. Between two lives nobody answers. Lives as long as the history.

#include <memory>
#include <optional>
#include <string>

#include "agent/coordinator/run_loop.h"
#include "agent/simulation/agent_model.h"
#include "agent/simulation/host_model.h"

namespace muster::agent::simulation {

struct CoordinatorOptions {
  const RunOptions* run = nullptr;
  RunFolder folder;
  int said_fd = -1;           ///< what it says to its user
  HostModel* host = nullptr;  ///< it is a node of the job; null: it leads only
};

class CoordinatorModel {
 public:
  /// Violates when the first life does not begin.
  CoordinatorModel(Ground& ground, CoordinatorOptions options);
  ~CoordinatorModel();

  /// Runs what is due, as far as it lives; it may die of it.
  void Turn();
  /// When it is due again.
  Instant Next() const;
  bool over() const { return run_ && run_->over(); }
  RunOutcome End();
  /// Nothing between two lives.
  const JobState* state() const { return run_ ? &run_->state() : nullptr; }
  std::uint32_t deaths() const { return past_.count; }

 private:
  class FatedClock;
  void Begin();
  void Bury();

  Ground& ground_;
  Lifetime life_;
  const CoordinatorOptions options_;
  std::unique_ptr<FatedClock> clock_;
  std::optional<SavedState> saved_;
  PastLife past_;
  Fd supervisor_;  ///< its end of the socket
  std::optional<Kept> kept_;
  std::shared_ptr<os::EventLoop> loop_;
  std::unique_ptr<RunLoop> run_;
};

}  // namespace muster::agent::simulation
