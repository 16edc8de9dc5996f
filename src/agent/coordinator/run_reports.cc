#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "agent/coordinator/run_loop.h"
#include "agent/coordinator/steady_pulse.h"
#include "base/host_name.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr std::size_t kSavedAtOnce = 256;                    // ranks, in 0.1 ms
constexpr auto kLoadingToldEach = std::chrono::seconds(53);  // there is a report each 5 s

bool AnyLives(const JobState& state, RankRange ranks) {
  for (std::uint32_t i = 0; i < ranks.count && ranks.first + i < state.ranks.size(); ++i) {
    const RankState rank = state.ranks[ranks.first + i].state;
    if (rank == RankState::kStarting || rank == RankState::kRunning) return true;
  }
  return false;
}

}  // namespace

/// The less is unsaved, the less happens twice when this process dies. But what an agent said is
/// not called taken before it is saved, and orders wait for that too: where a save takes long,
/// reports need not be saved one by one.
void RunLoop::Hear(const Report& report) {
  std::visit([this](const auto& what) { On(what); }, report);
  gang_ == nullptr || state_.ranks.size() <= kSavedAtOnce ? Save() : SaveSoon();
}

void RunLoop::On(const report::ZygoteReady& report) {
  events_.Add("zygote_ready", {{"pid", report.pid}});
  Feed({.kind = Event::Kind::kLoading});
}

void RunLoop::On(const report::ZygoteBroken& report) {
  state_.use_zygote = false;
  if (!report.why.empty()) {
    console_->Say(fmt::format("muster: {}; workers are executed from now on", report.why));
  }
  Feed({.kind = Event::Kind::kLoading});
}

/// Once soon, with what can be done about it, then once a minute.
void RunLoop::On(const report::Loading& report) {
  Feed({.kind = Event::Kind::kLoading});
  const Instant now = clock_.Now();
  if (told_loading_.first == report.pid && now < told_loading_.second) return;
  told_loading_ = {report.pid, now + kLoadingToldEach};
  console_->Say(
      fmt::format("muster: the ranks wait for pid {}, which they are forked from: it has been "
                  "loading {} for {} "
                  "s{}",
                  report.pid, options_.preload.empty() ? "its program" : options_.preload,
                  std::chrono::duration_cast<std::chrono::seconds>(report.lasted).count(),
                  options_.preload.empty() ? "" : "; --preload none does without it"));
}

void RunLoop::On(const report::Begun& report) {
  Feed({.kind = Event::Kind::kBegun, .generation = report.generation});
}

void RunLoop::On(const report::Started& report) {
  state_.zygote_served = state_.zygote_served || report.forked;
  pids_[report.rank.value()] = report.pid;
  kills_[report.rank.value()] = {};
  worker_started_ = events_.Add("worker_started", {{"gen", report.spawned.value()},
                                                   {"rank", report.rank.value()},
                                                   {"pid", report.pid},
                                                   {"how", report.forked ? "fork" : "exec"}});
  Feed({.kind = Event::Kind::kStarted, .rank = report.rank, .generation = report.spawned});
}

void RunLoop::On(const report::Exited& report) {
  const std::uint32_t rank = report.rank.value();
  const RankStatus& status = state_.ranks[rank];
  // Whoever follows a process that died says again what that one may not have said.
  if (status.spawned == report.spawned && status.ending) return;
  Event event{.kind = Event::Kind::kExited,
              .rank = report.rank,
              .generation = report.spawned,
              .ending = report.ending,
              .text = report.exception,
              .pid = report.pid};
  if (report.spawned == state_.ranks[rank].spawned && report.pid != 0) {
    Ending kill = std::exchange(kills_[rank], {});
    event.ending.hang = std::move(kill.hang);
    event.ending.still = kill.still;
    event.ending.rule = std::move(kill.rule);
  }
  Feed(std::move(event));
}

void RunLoop::On(const report::Standing& report) {
  const auto kind = report.quiesced ? Event::Kind::kQuiesced : Event::Kind::kCarries;
  Feed({.kind = kind, .rank = report.rank, .generation = report.spawned});
}

void RunLoop::On(const report::Progress& report) {
  for (const auto& [rank, record] : report.steps) {
    records_[rank.value()] = record.sequence;
    steps_->Add(rank, record);
    accounting_.Stepped(rank, record);
    hang_watch_.Stepped(record.step, std::chrono::microseconds(record.total_us));
  }
  steps_->Write();
  missed_steps_ = report.missed;
  state_.slowest_step = hang_watch_.SlowestStep();
  for (const auto& [rank, told, sight, io] : report.places) {
    if (sight && io) quiet_watch_.See(rank, *sight, *io, clock_.Now());
    RankSight& known = sights_[rank.value()];
    const os::Pulse pulse = Steadied(told, known.pulse);
    const bool moved =
        pulse.phase_since != known.pulse.phase_since || pulse.step != known.pulse.step;
    if (sight || moved) known.process = sight;
    known.pulse = pulse;
    ObserveRank(rank, pulse);
  }
  if (!report.complete) return;
  NoteReady();
  WatchForHangs();
}

void RunLoop::On(const report::Stopped& report) {
  if (report.generation < state_.generation) return;  // of an earlier stop, which was ordered twice
  if (report.left != 0) {
    console_->Say(
        fmt::format("muster: {} in the kernel (state D), where SIGKILL does not end it; "
                    "going on without",
                    Counted(report.left, "process", "es")));
  }
  Feed({.kind = Event::Kind::kStopped});
}

void RunLoop::On(const report::RuleFired& report) { RuleFired(report.firing); }

void RunLoop::On(const report::Words& report) {
  for (auto& [record, has_words] : faults_) {
    if (record.fault.rank != report.rank || record.fault.spawned != report.spawned) continue;
    record.out_tail = report.out_tail;
    record.err_tail = report.err_tail;
    record.error_file = report.error_file;
    record.environment = report.environment;
    has_words = true;
  }
  WriteFaults(false);
}

void RunLoop::On(const report::StacksTaken& report) {
  stack_calls_->Taken(report.id, report.ranks);
}

void RunLoop::On(const report::Stacks& report) {
  stack_calls_->Named(report.id, report.ranks, report.json);
}

void RunLoop::On(const report::Losses& report) {
  for (const LogLoss& loss : report.logs) {
    events_.AddLoss(loss);
  }
  if (report.rules_missed > 0) events_.Add("log_rules_missed", {{"bytes", report.rules_missed}});
}

void RunLoop::On(const report::Failed& report) { FailStart(report.error); }

void RunLoop::On(const report::Waiting& report) {
  console_->Say(fmt::format(
      "muster: waiting for {} of {} ({} s)", Counted(report.missing, "node"), report.slots,
      std::chrono::duration_cast<std::chrono::seconds>(report.lasted).count()));
  Feed({.kind = Event::Kind::kLoading});
}

void RunLoop::On(const report::Resized& report) {
  if (report.world != state_.ranks.size()) {
    events_.Add("resized", {{"gen", state_.generation.value()}, {"ranks", report.world}});
    console_->Say(fmt::format("muster: going on with {}", Counted(report.world, "rank")));
  }
  accounting_.Resize(report.world);
  Feed({.kind = Event::Kind::kResized, .ranks = report.world});
}

/// Of a node of several, and then to the gang.
void RunLoop::On(const report::Gone&) {}

/// To its ranks it is a death like others.
void RunLoop::On(const report::NodeLost& report) {
  events_.Add(report.shim ? "shim_lost" : "node_lost", {{"gen", state_.generation.value()},
                                                        {"node", report.name},
                                                        {"first_rank", report.ranks.first},
                                                        {"ranks", report.ranks.count},
                                                        {"reason", report.reason}});
  const std::string with = report.shim
                               ? fmt::format("the shim of node {}, {}", report.name, report.reason)
                               : fmt::format("node {}: {}", report.name, report.reason);
  const bool stopping = state_.phase == Phase::kStopping || state_.phase == Phase::kEnding;
  const bool fault = !stopping && AnyLives(state_, report.ranks);
  if (!fault) console_->Say(fmt::format("muster: lost {}", with));  // nothing else tells of it
  Feed({.kind = Event::Kind::kNodeLost,
        .rank = Rank(report.ranks.first),
        .ending = {.signal = SIGKILL,
                   .time = report.since == Instant{} ? clock_.Now() : report.since,
                   .with = with},
        .ranks = report.ranks.count});
}

/// Of the only node. Whoever follows a process that died says again what that one may have said, or
/// may have acted upon in part.
void RunLoop::On(const report::Lost& report) {
  const RankRange all{0, static_cast<std::uint32_t>(state_.ranks.size())};
  if (state_.without_shim && !AnyLives(state_, all)) return;
  Feed({.kind = Event::Kind::kShimLost});
  On(report::NodeLost{.name = HostName(), .ranks = all, .reason = report.reason, .shim = true});
}

void RunLoop::On(const report::Ended& report) {
  node_end_ = report;
  loop_->Stop();
}

}  // namespace muster::agent
