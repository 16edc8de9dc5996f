#pragma once
// What is so in a history, whoever knows of it: which worker processes exist, in which generation
// each of them is, how far they came, and the table that agents were given for a generation. Here
// the invariants are held: one table a generation, no rank twice in one, no worker of an older
// generation beside a newer one on a host, and faults only where something happened.
//
// Workers of a generation step together, as in a data-parallel job: all of them, or nobody.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/node/messages.h"
#include "agent/simulation/world.h"

namespace muster::agent::simulation {

/// What the job's program is like.
struct Program {
  bool ours = true;      ///< it publishes steps
  bool in_place = true;  ///< and can outlive another rank's death
  bool zygote = false;
  std::uint64_t steps = 100;
  std::uint64_t durable_every = 10;
  nanoseconds step = milliseconds(500);
  nanoseconds publish = seconds(1);  ///< how often a node tells of them
};

using WorkerId = std::uint64_t;

/// Whoever started workers hears of them.
class WorkerOwner {
 public:
  virtual ~WorkerOwner() = default;
  virtual void PeerDied(WorkerId worker) = 0;  ///< one of its generation
  virtual void Finished(WorkerId worker) = 0;  ///< it has done its last step
};

class Truth {
 public:
  Truth(World& world, const Program& program) : world_(world), program_(program) {}

  const Program& program() const { return program_; }
  /// An agent was given its part of a generation's table.
  void GivenTable(const std::string& agent, const order::Start& part);
  WorkerId Begin(const std::string& agent, Rank rank, Generation spawned, WorkerOwner* owner);
  /// It goes on in a newer generation.
  void GoOn(WorkerId worker, Generation generation);
  /// `by_order`: the coordinator wanted it.
  void End(WorkerId worker, bool by_order);
  void Quiesce(WorkerId worker);
  /// It does nothing any more, and nobody notices by itself.
  void Hang(WorkerId worker);
  /// Nobody hears of them any more; they go on until they end.
  void Orphan(const WorkerOwner* owner);

  bool Lives(WorkerId worker) const { return workers_.contains(worker); }
  std::size_t living() const { return workers_.size(); }
  /// "a3: rank 1 of generation 2", of those that live.
  std::string Living() const;
  os::Pulse PulseOf(WorkerId worker) const;
  std::vector<os::StepRecord> StepsOf(WorkerId worker, std::uint64_t after) const;

  /// The newest generation of which all ranks live, and all work.
  bool Works(Generation generation) const;
  std::uint64_t starts() const { return tables_.size(); }

  /// Something happened to an agent or its workers that may cost it its place.
  void Disturbed(const std::string& agent);
  bool WasDisturbed(const std::string& agent) const { return disturbed_.contains(agent); }
  void ShimDied(const std::string& agent) { without_shim_.insert(agent); }
  bool LostShim(const std::string& agent) const { return without_shim_.contains(agent); }
  /// A rank's process ended by itself, was killed, or hung to its end, in that generation or on the
  /// way to it: one that waits may have missed some.
  bool Died(Rank rank, Generation in) const;

 private:
  struct Worker {
    std::string agent;
    Rank rank;
    Generation spawned, generation;
    WorkerOwner* owner = nullptr;
    bool quiesced = false;
    bool hangs = false;
    std::uint64_t resumed = 0;  ///< the step behind which it began
    std::uint64_t frozen = 0;   ///< its last step, once it waits
    Instant since{};
  };
  struct Death {
    Generation in;
    std::optional<Generation> next{};  ///< in which the rank began again
  };
  struct Table {
    order::Start first;
    std::map<Rank, std::string> owners;
    std::set<std::string> agents;
  };
  struct Crew {
    std::map<Rank, WorkerId> workers;
    std::uint32_t world = 0;
    std::uint64_t step = 0;
    Instant stepped{};
    bool ticking = false;
    bool over = false;  ///< somebody of it died, or waits
  };
  void Enter(WorkerId id, Worker& worker, Generation generation);
  void Tick(Generation generation);
  void StepLater(Generation generation);
  bool Complete(const Crew& crew) const;

  World& world_;
  const Program program_;
  WorkerId next_ = 1;
  std::map<WorkerId, Worker> workers_;
  std::map<Generation, Table> tables_;
  std::map<Generation, Crew> crews_;
  std::uint64_t durable_ = 0;
  std::set<std::string> disturbed_;
  std::set<std::string> without_shim_;  ///< ever
  std::map<Rank, std::vector<Death>> deaths_;
};

}  // namespace muster::agent::simulation
