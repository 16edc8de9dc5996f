#include "agent/simulation/fault_plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

namespace muster::agent::simulation {

FaultPlan::FaultPlan(Ground& ground, std::vector<std::unique_ptr<AgentModel>>& agents,
                     HostModel* host)
    : ground_(ground), agents_(agents), host_(host), life_(ground.world.loop()) {
  World& world = ground_.world;
  until_ = seconds(5 + world.Below(60));
  if (world.Chance(0.1)) return;  // a job to which nothing happens
  any_ = true;
  strikes_ = world.Below(9);
  rough_ = world.Chance(0.5);
  if (rough_) DrawWeather();
  interrupts_ = world.Chance(0.04);
  if (world.Chance(0.3)) ground_.crashes = world.Chance(0.5) ? 0.002 : 0.02;
  if (world.Chance(0.4)) coordinator_ = world.Chance(0.5) ? 0.0002 : 0.003;
  if (host_ != nullptr && world.Chance(0.5)) shim_ = world.Chance(0.5) ? 0.0005 : 0.005;
  ground_.slow_saves = world.Chance(0.3);
  if (world.Chance(0.2)) ground_.mishaps.start_error = 0.02;
  if (world.Chance(0.1)) ground_.mishaps.slow_start = 0.05;
  if (world.Chance(0.3)) ground_.mishaps.never_unwinds = 0.1;
  if (world.Chance(0.3)) ground_.mishaps.dies_late = 0.1;
}

void FaultPlan::DrawWeather() {
  World& world = ground_.world;
  const double worst = world.Chance(0.3) ? 0.1 : 0.01;
  const auto draw = [&] { return world.Chance(0.5) ? worst * 0.1 * double(world.Below(10)) : 0; };
  weather_ = {.refused = draw(),
              .unheard = draw(),
              .doubled = draw(),
              .straggles = draw(),
              .breaks = draw()};
  weather_.most = milliseconds(world.Chance(0.2) ? 2000 : 20);
}

std::string FaultPlan::Describe() const {
  return fmt::format(
      "{} strikes in {} s{}, an agent crashes at {} of its messages, the coordinator at {} of its "
      "steps{}, the shim of its host at {}, {} of starts fail, {} are "
      "slow, {} do not unwind, {} die late; of requests {} refused, {} unheard, {} doubled, {} "
      "late; streams "
      "break at {}",
      strikes_, std::chrono::duration_cast<seconds>(until_).count(),
      interrupts_ ? ", interrupted" : "", ground_.crashes, coordinator_,
      ground_.slow_saves ? " and saves slowly" : "", shim_, ground_.mishaps.start_error,
      ground_.mishaps.slow_start, ground_.mishaps.never_unwinds, ground_.mishaps.dies_late,
      weather_.refused, weather_.unheard, weather_.doubled, weather_.straggles, weather_.breaks);
}

void FaultPlan::Begin() {
  ground_.network.SetWeather(weather_);
  ground_.fate.SetChance(coordinator_);
  if (shim_ > 0) ground_.fate.SetBeside(shim_, [this] { host_->KillShim(); });
  for (std::uint64_t i = 0; i < strikes_; ++i) {
    life_.After(nanoseconds(static_cast<std::int64_t>(
                    ground_.world.Below(static_cast<std::uint64_t>(until_.count())))),
                [this] { Strike(); });
  }
  if (interrupts_) {
    life_.After(ground_.world.Delay(seconds(1), until_), [this] {
      if (ground_.run_over) return;
      ground_.world.Note("the user interrupts");
      ::kill(::getpid(), ground_.world.Chance(0.5) ? SIGTERM : SIGINT);
    });
  }
  life_.After(until_, [this] { Calm(); });
}

void FaultPlan::Calm() {
  ground_.world.Note("faults stop");
  ground_.faults = false;
  ground_.fate.SetChance(0);
  ground_.fate.SetBeside(0, {});
  ground_.mishaps = {};
  ground_.network.SetWeather({});
}

void FaultPlan::Strike() {
  if (ground_.run_over) return;
  const std::size_t hosts = agents_.size() + (host_ != nullptr ? 1 : 0);
  const std::size_t struck = ground_.world.Below(hosts);
  if (struck < agents_.size()) return StrikeAgent(*agents_[struck]);
  ground_.truth.Disturbed(host_->name());
  if (ground_.world.Chance(0.3)) return host_->KillShim();
  StrikeWorker(host_->node(), "the coordinator's host");
}

void FaultPlan::StrikeAgent(AgentModel& agent) {
  ground_.truth.Disturbed(agent.name());
  switch (ground_.world.Below(10)) {
    case 0:
      return agent.Crash(false);
    case 1:
      return agent.Crash(true);
    case 2:
      ground_.world.Note(agent.name() + " is told to end");
      return agent.Leave();
    case 3:
    case 4:
    case 5:
      return StrikeNetwork(agent);
    default:
      if (agent.node() != nullptr) StrikeWorker(*agent.node(), agent.name());
  }
}

void FaultPlan::StrikeWorker(NodeModel& node, const std::string& name) {
  World& world = ground_.world;
  switch (world.Below(8)) {
    case 0:
      world.Note("the shim of " + name + " dies");
      return node.KillShim();
    case 1:
      world.Note("a worker of " + name + " hangs");
      // Of others nobody could know.
      return ground_.program.ours ? node.HangOne() : node.KillOne({.signal = SIGKILL});
    case 2:
    case 3:
      world.Note("a worker of " + name + " crashes");
      return node.KillOne({.code = 1});
    default:
      world.Note("a worker of " + name + " is killed");
      return node.KillOne({.signal = SIGKILL});
  }
}

void FaultPlan::StrikeNetwork(AgentModel& agent) {
  World& world = ground_.world;
  if (world.Chance(0.4)) {
    const bool silently = world.Chance(0.3);
    world.Note(fmt::format("the connections of {} break{}", agent.name(),
                           silently ? ", and the coordinator does not hear of it" : ""));
    return ground_.network.Break(agent.name(), silently);
  }
  const bool to = world.Chance(0.7);
  const bool from = !to || world.Chance(0.6);
  const nanoseconds how_long = world.Delay(milliseconds(50), seconds(45));
  world.Note(fmt::format("{} is cut off{}{} for {:.2f} s", agent.name(), to ? ", to it" : "",
                         from ? ", from it" : "", std::chrono::duration<double>(how_long).count()));
  ground_.network.CutOff(agent.name(), to, from, how_long);
}

}  // namespace muster::agent::simulation
