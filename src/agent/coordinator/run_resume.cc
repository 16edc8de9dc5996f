#include <fmt/format.h>
#include <unistd.h>

#include "agent/coordinator/job_fields.h"
#include "agent/coordinator/run_loop.h"
#include "agent/keep/archive.h"
#include "profile/report/text.h"

namespace muster::agent {

/// Everything that whoever follows must know and cannot learn from the shim or the run folder.
template <typename A>
void RunLoop::FieldsOfRun(A& a) {
  a("state", state_), a("accounting", accounting_), a("pids", pids_), a("kills", kills_),
      a("records", records_);
  a("missed", missed_steps_), a("store_port", store_port_);
  a("worker_started", worker_started_), a("reports_steps", reports_steps_);
  a("ready", ready_), a("durable", durable_), a("faults", faults_), a("kept", kept_);
  a("fault_sentence", fault_sentence_), a("earlier", earlier_), a("last_fault", last_fault_);
  a("told_exec", told_exec_);
}

void RunLoop::Save() {
  if (!kept_fds_.supervised()) return;
  ArchiveWriter writer;
  FieldsOfRun(writer);
  kept_fds_.Save(writer.Take());
}

/// False when there was none before this one, or none that had begun.
bool RunLoop::Restore() {
  const PastLife& past = kept_fds_.past();
  if (!past.state) return false;
  ArchiveReader reader(*past.state);
  FieldsOfRun(reader);
  if (!reader.whole()) return false;
  events_.GoOn();
  steps_->GoOn();
  return true;
}

NodePlace RunLoop::PlaceOfNode() const {
  NodePlace place{
      .generation = state_.generation, .records = records_, .use_zygote = state_.use_zygote};
  for (const RankStatus& rank : state_.ranks) {
    place.spawned.push_back(rank.spawned);
    place.runs.push_back(rank.state == RankState::kRunning ? 1 : 0);
  }
  return place;
}

void RunLoop::GoOn() {
  const PastLife& past = kept_fds_.past();
  events_.Add("coordinator_back", {{"gen", state_.generation.value()},
                                   {"pid", ::getpid()},
                                   {"died", past.death},
                                   {"died_ns", past.died.time_since_epoch().count()},
                                   {"lives", past.count + 1}});
  TellGoOn();
  // What a dead worker left behind went with the process that had read it.
  for (PendingFault& pending : faults_) pending.has_words = true;
  WriteFaults(false);
  const Phase before = state_.phase;
  if (before == Phase::kIdle) return Feed({.kind = Event::Kind::kStart});
  const Plan plan = Resume(state_, clock_.Now(), options_.policy);
  state_ = plan.next;
  Save();
  if (!plan.reason.empty()) console_->Say("muster: " + plan.reason);
  for (const Action& action : plan.actions) Apply(action);
  ArmTick();
}

void RunLoop::TellGoOn() {
  const PastLife& past = kept_fds_.past();
  const auto away = std::chrono::duration<double>(clock_.Now() - past.died).count();
  const std::string undisturbed =
      state_.phase == Phase::kRunning ? "; the ranks were not disturbed" : "";
  console_->Say(fmt::format(
      "muster: the process that steers the run died ({}); another one took its place after {}{}",
      past.death, profile::FormatSeconds(away), undisturbed));
}

}  // namespace muster::agent
