#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "agent/coordinator/job_fields.h"
#include "agent/coordinator/run_loop.h"
#include "agent/keep/archive.h"
#include "profile/report/text.h"

namespace muster::agent {

template <typename A>
void Fields(A& a, net::TlsIdentity& m) {
  a("key", m.key_pem), a("certificate", m.certificate_pem), a("fingerprint", m.fingerprint);
}
template <typename A>
void Fields(A& a, SentOrder& m) {
  a("number", m.number), a("text", m.text);
}
template <typename A>
void Fields(A& a, PeerPlace& m) {
  a("name", m.name), a("ranks", m.ranks), a("seated", m.seated), a("met", m.met);
  a("before", m.before);
  a("orders", m.orders), a("reports", m.reports), a("unseen", m.unseen);
}
template <typename A>
void Fields(A& a, HubPlace::Peer& m) {
  a("agent", m.agent), a("place", m.place);
}
template <typename A>
void Fields(A& a, HubPlace& m) {
  a("joined", m.joined), a("peers", m.peers);
}
template <typename A>
void Fields(A& a, SshPlace& m) {
  a("host", m.host), a("ended", m.ended), a("pid", m.pid);
}
template <typename A>
void Fields(A& a, JoinPlace& m) {
  a("token", m.token), a("tls", m.tls), a("hub", m.hub), a("joined", m.joined), a("ssh", m.ssh);
}
template <typename A>
void Fields(A& a, NodeName& m) {
  a("agent", m.agent), a("name", m.name);
}
template <typename A>
void Fields(A& a, MemberPlace& m) {
  a("who", m.who), a("ready", m.ready), a("without_shim", m.without_shim), a("ended", m.ended);
}
template <typename A>
void Fields(A& a, SlotPlace& m) {
  a("member", m.member), a("working", m.working);
}
template <typename A>
void Fields(A& a, GangPlace& m) {
  a("generation", m.generation), a("told", m.told), a("slots", m.slots);
  a("spares", m.spares);
}

namespace {

constexpr int kOtherTime = 9;  // a save may take a tenth of the time
// What is measured is at least that; a clock that stands still meanwhile (agent/simulation) shows
// nothing.
constexpr auto kApartByRank = std::chrono::microseconds(5);

}  // namespace

/// Everything that whoever follows must know and cannot learn from the shim or the run folder.
template <typename A>
void RunLoop::FieldsOfRun(A& a) {
  a("state", state_), a("accounting", accounting_), a("pids", pids_), a("kills", kills_),
      a("records", records_);
  a("missed", missed_steps_), a("store_port", store_port_);
  a("worker_started", worker_started_), a("reports_steps", reports_steps_);
  a("ready", ready_), a("durable", durable_), a("faults", faults_), a("kept", kept_);
  a("fault_sentence", fault_sentence_), a("earlier", earlier_), a("last_fault", last_fault_);
  a("told_exec", told_exec_), a("join", join_place_), a("gang", gang_place_);
}

void RunLoop::Save() {
  if (save_timer_) loop_->Remove(*std::exchange(save_timer_, {}));
  if (!kept_fds_.supervised()) return;
  const Instant begin = clock_.Now();
  if (join_) join_place_ = join_->place();
  if (gang_ != nullptr) gang_place_ = gang_->place();
  ArchiveWriter writer;
  FieldsOfRun(writer);
  kept_fds_.Save(writer.Take());
  if (join_) join_->hub().Release();
  const Instant end = clock_.Now();
  save_due_ = end + std::max<nanoseconds>(kOtherTime * (end - begin), pids_.size() * kApartByRank);
}

/// What nobody waits for: of thousands of ranks a save takes milliseconds.
void RunLoop::SaveSoon() {
  if (save_timer_) return;
  if (clock_.Now() >= save_due_) return Save();
  save_timer_ = loop_->At(save_due_, [this] {
    save_timer_.reset();
    Save();
  });
}

/// False when there was none before this one, or none that had begun.
bool RunLoop::Restore() {
  const PastLife& past = kept_fds_.past();
  if (!past.state) return false;
  ArchiveReader reader(*past.state);
  FieldsOfRun(reader);
  if (!reader.whole()) return false;
  found_ = {state_.phase, state_.generation};
  events_.GoOn();
  steps_->GoOn();
  return true;
}

NodePlace RunLoop::PlaceOfNode(RankRange ranks) const {
  NodePlace place{
      .generation = state_.generation, .first = ranks.first, .use_zygote = state_.use_zygote};
  for (std::uint32_t i = 0; i < ranks.count; ++i) {
    const Rank rank = ranks.At(i);
    // A job that goes on with fewer has no such rank.
    const bool has = rank.value() < state_.ranks.size();
    const RankStatus status = has ? state_.ranks[rank.value()] : RankStatus{};
    place.records.push_back(records_[rank.value()]);
    place.spawned.push_back(status.spawned);
    place.runs.push_back(status.state == RankState::kRunning ? 1 : 0);
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
  for (PendingFault& pending : faults_) {
    const bool ours = gang_ == nullptr ||
                      (gang_->OwnRanks() && gang_->OwnRanks()->Has(pending.record.fault.rank));
    pending.has_words = pending.has_words || ours;
  }
  WriteFaults(false);
  const Phase before = state_.phase;
  if (before == Phase::kIdle) return Feed({.kind = Event::Kind::kStart});
  // What the node missed came first, and led to orders of our own.
  if (found_ != std::pair(before, state_.generation)) return ArmTick();
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
