#pragma once
// A model of `muster agent` on one host (remote/agent_process), around the real AgentLink: its
// process may crash at every step of the protocol, before it carries out an order or behind that,
// and comes back as a new agent of the same name. Lives as long as the history.

#include <memory>
#include <string>

#include "agent/remote/agent_link.h"
#include "agent/simulation/network.h"
#include "agent/simulation/node_model.h"

namespace muster::agent::simulation {

/// What all agents of a history share.
struct Ground {
  World& world;
  Fate& fate;
  Network& network;
  Truth& truth;
  Program program;
  Mishaps mishaps;
  milliseconds patience = seconds(60);
  double crashes = 0;  ///< of an agent, with each order and each report
  bool slow_saves = false;
  bool faults = true;  ///< they have not stopped yet
  bool run_over = false;
};

class AgentModel {
 public:
  AgentModel(Ground& ground, std::string name)
      : ground_(ground), life_(ground.world.loop()), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  void BeginIn(nanoseconds delay);
  /// The process is killed; with `host_too` its workers die at once, and nobody closes connections.
  void Crash(bool host_too);
  /// It is told to end, as by TERM.
  void Leave();
  bool runs() const { return process_ != nullptr; }
  NodeModel* node();

 private:
  /// One life.
  struct Process {
    Process(os::EventLoop& loop, std::uint32_t died) : life(loop), deaths(died) {}
    Lifetime life;
    std::unique_ptr<NodeModel> node;
    std::unique_ptr<AgentLink> link;
    const std::uint32_t deaths;  ///< of coordinators, before it began to join
    bool crashing = false;
    bool leaving = false;
    bool ended = false;  ///< its node
    Instant stop_by{};
    std::optional<Error> error;
  };
  void Begin();
  void TakeTicket(const JobTicket& ticket);
  void Take(const Order& order);
  void Hear(Report report);
  void LoseLink(const Error& error);
  void Leave(const std::string& why, nanoseconds grace);
  void StopWhenDelivered();
  void Stop();
  void Bury();
  bool CrashesNow();

  Ground& ground_;
  Lifetime life_;
  const std::string name_;
  std::unique_ptr<Process> process_;
};

}  // namespace muster::agent::simulation
