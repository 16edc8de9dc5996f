#include <fmt/format.h>

#include <algorithm>

#include "agent/coordinator/fault_sentence.h"
#include "agent/coordinator/run_loop.h"
#include "base/text.h"
#include "profile/report/text.h"

namespace muster::agent {
namespace {

using profile::FormatSeconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kRecoverySoon = milliseconds(1500);

std::string StepRange(std::uint64_t first, std::uint64_t last) {
  return first == last ? std::to_string(last) : fmt::format("{} to {}", first, last);
}

std::string_view CauseOf(RankState state) {
  if (state == RankState::kFinished) return "finished";
  return state == RankState::kStopped ? "stopped" : "fault";
}

}  // namespace

void RunLoop::ObserveRank(Rank rank, const os::Pulse& pulse) {
  RankStatus& status = state_.ranks[rank.value()];
  if (pulse.generation != state_.generation) return;
  status.steps = reports_steps_ = true;
  status.step = pulse.step;
  status.refused = pulse.phase == os::Phase::kRefused;
  status.alive = pulse.phase_since;
  status.durable = std::max(status.durable, pulse.durable_step);
  if (pulse.durable_step <= durable_) return;
  durable_ = pulse.durable_step;
  events_.Add("checkpoint", {{"gen", state_.generation.value()}, {"step", durable_}});
}

void RunLoop::NoteReady() {
  if (ready_ != state_.generation && accounting_.AllStepped(state_.generation)) {
    ready_ = state_.generation;
    events_.Add("ranks_ready", {{"gen", ready_.value()}});
  }
  TellRecovery();
  TellReplay();
}

void RunLoop::NoteExit(const Event& event, Phase before) {
  if (before == Phase::kQuiescing) NoteAnother(event);
  if (event.pid == 0) return;  // it never ran
  const bool current = event.generation == state_.ranks[event.rank.value()].spawned;
  const std::string cause(current ? CauseOf(state_.ranks[event.rank.value()].state) : "stopped");
  const EventLog::Field how = event.ending.signal != 0
                                  ? EventLog::Field("signal", os::SignalName(event.ending.signal))
                                  : EventLog::Field("code", event.ending.code);
  events_.Add("worker_exited", {{"gen", event.generation.value()},
                                {"rank", event.rank.value()},
                                {"pid", event.pid},
                                how,
                                {"cause", cause}});
}

/// A rank that ends while others unwind is of the fault that is written down already.
void RunLoop::NoteAnother(const Event& event) {
  if (faults_.empty()) return;
  FaultRecord& record = faults_.back().record;
  if (record.fault.generation != state_.fault->generation) return;
  RankStatus& rank = record.ranks[event.rank.value()];
  if (rank.spawned != event.generation || rank.state != RankState::kRunning) return;
  rank.state = rank.doomed         ? RankState::kStopped
               : event.ending.ok() ? RankState::kFinished
                                   : RankState::kFailed;
  rank.ending = event.ending;
  record.fault.others = state_.fault->others;
  if (fault_sentence_) *fault_sentence_ = WithFault(earlier_, Headline(*state_.fault));
}

void RunLoop::NotePhase(Phase before, const Plan& plan) {
  const Phase after = state_.phase;
  if (before == after) return;
  const bool paused =
      before == Phase::kGathering || before == Phase::kStarting || before == Phase::kRunning;
  const bool has_fault = state_.fault && state_.fault->generation == state_.generation;
  const bool pausing =
      after == Phase::kQuiescing || after == Phase::kStopping || after == Phase::kEnding;
  if (paused && has_fault && pausing) NoteFault(plan.reason);
  if (before == Phase::kQuiescing && after == Phase::kStarting) NoteQuiesced();
  if (before == Phase::kQuiescing && after == Phase::kStopping && !faults_.empty()) {
    faults_.back().record.decision += "; " + plan.reason;
    console_->Say("muster: " + plan.reason);
  }
  const bool stopped = before == Phase::kStopping || before == Phase::kEnding;
  if (stopped && (after == Phase::kStarting || after == Phase::kEnded)) {
    // The state already holds the next generation's number.
    const auto gen = state_.generation.value() - (after == Phase::kStarting ? 1 : 0);
    const bool succeeded = state_.verdict && state_.verdict->succeeded;
    if (succeeded) return;
    const Instant now = events_.Add("workers_stopped", {{"gen", gen}});
    accounting_.WorkersStopped(now);
    if (!faults_.empty() && faults_.back().record.stopped == Instant{}) {
      faults_.back().record.stopped = now;
    }
    WriteFaults(false);
  }
  if (before == Phase::kStarting && after == Phase::kRunning && state_.last_fault) {
    accounting_.Restarted(worker_started_, reports_steps_);
    TellRecovery();
  }
}

/// Everybody who lives stands at a step boundary; the state already holds the next generation.
void RunLoop::NoteQuiesced() {
  kept_ = static_cast<std::size_t>(std::ranges::count(
      state_.ranks, RankState::kRunning, [](const RankStatus& rank) { return rank.state; }));
  const Instant now =
      events_.Add("ranks_quiesced", {{"gen", state_.generation.value() - 1}, {"kept", kept_}});
  accounting_.WorkersStopped(now);
  if (!faults_.empty() && faults_.back().record.stopped == Instant{}) {
    faults_.back().record.stopped = now;
  }
  WriteFaults(false);
}

void RunLoop::NoteFault(const std::string& decision) {
  const Fault& fault = *state_.fault;
  const std::string cause = Describe(fault.ending);
  std::vector<std::uint32_t> others;
  for (const Rank other : fault.others) others.push_back(other.value());
  const bool idle = state_.verdict && CameToNoWork(state_, options_.policy);
  const auto step = fault.steps || idle ? std::optional(fault.step) : std::nullopt;
  events_.Add("fault", {{"gen", fault.generation.value()},
                        {"rank", fault.rank.value()},
                        {"others", others},
                        {"cause", cause},
                        {"step", step},
                        {"died_ns", DiedAt(fault).time_since_epoch().count()}});
  const Instant now = events_.Add("pause", {{"gen", fault.generation.value()}});
  accounting_.FaultStruck(DiedAt(fault), fault.rank, step);
  accounting_.Paused(now);
  FaultRecord record;
  record.fault = fault;
  record.decision = decision;
  record.command = options_.command;
  record.ranks = state_.ranks;
  record.paused = now;
  faults_.push_back({std::move(record)});
  node_->Send(order::TellWords{fault.rank, fault.spawned, fault.generation, state_.restarts,
                               static_cast<std::uint32_t>(state_.ranks.size()), store_host_,
                               store_port_});
  // One that struck before the last was recovered from is not forgotten.
  earlier_ = fault_sentence_.value_or("");
  fault_sentence_ = WithFault(earlier_, Headline(fault));
  kept_ = 0;
  last_fault_ = {fault.rank, fault.spawned};
  TellFaultLater();
  if (state_.next == RestartKind::kExec && !std::exchange(told_exec_, true)) {
    console_->Say("muster: " + decision);
  }
}

/// Of a generation: with the fault that it was to follow, and where the folder went when somebody
/// moved it.
std::string RunLoop::WhyNotStarted(const Error& error) const {
  std::string why = error.ToString();
  const std::string now = folder_.Now();
  if (!now.empty() && now != folder_.path()) {
    why = fmt::format("the run folder was moved to {}: {}", now, why);
  }
  if (now.empty()) why = fmt::format("the run folder {} is gone: {}", folder_.path(), why);
  return fault_sentence_ ? fmt::format("{}, and could not be restarted: {}", *fault_sentence_, why)
                         : why;
}

/// One sentence tells a prompt recovery; a slow one is not waited for.
void RunLoop::TellFaultLater() {
  const Generation generation = state_.fault->generation;
  loop_->After(kRecoverySoon, [this, generation] {
    const bool same = state_.fault && state_.fault->generation == generation;
    if (same && fault_sentence_ && !state_.verdict) {
      console_->Say("muster: " + *fault_sentence_ + "; not recovered yet");
    }
  });
}

void RunLoop::TellRecovery() {
  const auto recovery = accounting_.TakeRecovery();
  if (!recovery || !fault_sentence_) return;
  const std::string who = Counted(state_.ranks.size(), "rank");
  if (kept_ > 0) *fault_sentence_ += fmt::format("; {} kept", Counted(kept_, "rank"));
  const std::string took = FormatSeconds(recovery->lost.recovery());
  if (recovery->no_step_left && recovery->lost.exact()) {
    console_->Say(fmt::format("muster: {}; recovered in {}: {} at work again, with no step left",
                              *fault_sentence_, took, who));
  } else if (recovery->lost.exact()) {
    console_->Say(fmt::format("muster: {}; recovered in {}: {} at work again from step {}",
                              *fault_sentence_, took, who, recovery->resume_step + 1));
  } else {
    // What it had saved by itself nobody knows, so nothing of its work is called lost.
    console_->Say(fmt::format(
        "muster: {}; {} started again after {}; what of the {} before was not saved is done again",
        *fault_sentence_, who, took, FormatSeconds(recovery->lost.unknown)));
  }
  fault_sentence_.reset();
}

void RunLoop::TellReplay() {
  const auto replay = accounting_.TakeReplay();
  if (!replay) return;
  console_->Say(
      fmt::format("muster: done again: step {}; lost {}: recovery {}, replay {}",
                  StepRange(replay->first, replay->step), FormatSeconds(replay->lost.at_most()),
                  FormatSeconds(replay->lost.recovery()), FormatSeconds(replay->lost.replay)));
}

/// A record is written once it has the dead worker's output and its generation is over. `now`:
/// without what is missing.
void RunLoop::WriteFaults(bool now) {
  while (!faults_.empty()) {
    auto& [record, has_words] = faults_.front();
    const auto stacks = stacks_.find(record.fault.generation);
    const bool due = stacks != stacks_.end() && stacks->second.due;
    if (!now && (!has_words || due || record.stopped == Instant{})) return;
    if (stacks != stacks_.end()) {
      record.stacks = stacks->second.groups;
      record.stacks_file = stacks->second.file;
    }
    const std::string text = FormatFault(record);
    const std::string name = fmt::format("fault-{}.json", record.fault.generation.value());
    Status written = folder_.Write(name, text, 0600);
    if (written) written = folder_.Write("fault.json", text, 0600);
    if (!written) console_->Say("muster: " + written.error().ToString());
    faults_.erase(faults_.begin());
  }
}

void RunLoop::Housekeep() {
  FollowKernelLog();
  steps_->Flush();
  events_.Flush();
  loop_->After(seconds(1), [this] { Housekeep(); });
}

}  // namespace muster::agent
