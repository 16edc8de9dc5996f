#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "agent/coordinator/plan.h"
#include "os/signals.h"
#include "spec/env.h"

namespace muster::agent {
namespace {

constexpr std::size_t kMostCrashes = 8;  // each another one, and none was got over

bool Alive(const RankStatus& rank) {
  return rank.state == RankState::kStarting || rank.state == RankState::kRunning;
}

bool AnyAlive(const JobState& state) { return std::ranges::any_of(state.ranks, Alive); }

bool AllIn(const JobState& state, RankState wanted) {
  return std::ranges::all_of(state.ranks,
                             [&](const RankStatus& rank) { return rank.state == wanted; });
}

/// One step of the machine; `plan.next` starts as the state before.
class Step {
 public:
  Step(JobState state, Instant now, const Policy& policy) : now_(now), policy_(policy) {
    plan_.next = std::move(state);
  }

  void Take(const Event& event) {
    switch (event.kind) {
      case Event::Kind::kStart:
        if (state().phase == Phase::kIdle) StartGeneration(RestartKind::kProcesses);
        break;
      case Event::Kind::kLoading:
        if (state().phase == Phase::kStarting) state().deadline = now_ + policy_.start_limit;
        break;
      case Event::Kind::kResized:
        if (state().phase == Phase::kStarting) Resize(event.ranks);
        break;
      case Event::Kind::kStarted:
        Started(event);
        break;
      case Event::Kind::kExited:
        Exited(event);
        break;
      case Event::Kind::kNodeLost:
        NodeLost(event);
        break;
      case Event::Kind::kTick:
        Tick();
        break;
      case Event::Kind::kCarries:
        if (RankStatus* rank = Current(event)) rank->carries = true;
        break;
      case Event::Kind::kQuiesced:
        if (RankStatus* rank = Current(event)) rank->quiesced = true;
        if (state().phase == Phase::kRunning) AwaitCause();
        if (state().phase == Phase::kQuiescing) GoOnInPlace();
        break;
      case Event::Kind::kStopped:
        Stopped();
        break;
      case Event::Kind::kInterrupt:
        Interrupt(event.signal);
        break;
      case Event::Kind::kShimLost:
        state().without_shim = true;
        break;
      case Event::Kind::kBegun:
        if (event.generation == state().generation) Begun();
        break;
      case Event::Kind::kGiveUp:
        Finish({false, event.ending.code, event.text}, SIGTERM, policy_.grace);
        break;
    }
  }

  void Resume() {
    JobState& s = state();
    switch (s.phase) {
      case Phase::kIdle:
      case Phase::kRunning:
        break;
      case Phase::kStarting:
        s.next = s.use_zygote ? RestartKind::kProcesses : RestartKind::kExec;
        s.counted = true;
        plan_.reason = "a start is done again";
        OrderStop(Phase::kStopping, SIGTERM, Grace());
        break;
      case Phase::kGathering:
      case Phase::kQuiescing:
        if (s.aborted) Order({.kind = Action::Kind::kAbort});
        break;
      case Phase::kStopping:
      case Phase::kEnding:
        OrderStop(s.phase, SIGTERM,
                  std::max(nanoseconds(0), s.deadline - policy_.stop_limit - now_));
        break;
      case Phase::kEnded:
        Order({.kind = Action::Kind::kEnd});
        break;
    }
  }

  Plan Done() { return std::move(plan_); }

 private:
  JobState& state() { return plan_.next; }

  void Order(Action action) { plan_.actions.push_back(action); }

  void StartGeneration(RestartKind kind) {
    NoteWork();
    JobState& s = state();
    s.generation = Generation(s.generation.value() + 1);
    s.aborted = s.begun = false;
    s.in_place = kind == RestartKind::kInPlace;
    for (RankStatus& rank : s.ranks) {
      if (s.in_place && rank.state == RankState::kRunning) continue;
      // What is durable outlives a generation; all else begins anew.
      rank = RankStatus{
          .state = RankState::kStarting, .durable = rank.durable, .spawned = s.generation};
    }
    if (kind == RestartKind::kExec) s.use_zygote = false;
    s.phase = Phase::kStarting;
    s.deadline = now_ + policy_.start_limit;
    s.began = now_;
    s.next.reset();
    if (std::exchange(s.without_shim, false)) kind = RestartKind::kFull;
    Order({.kind = Action::Kind::kStartRanks, .generation = s.generation, .restart = kind});
  }

  /// Ranks are other ones than before: all of them begin anew.
  void Resize(std::uint32_t ranks) {
    JobState& s = state();
    s.ranks.resize(ranks);
    for (RankStatus& rank : s.ranks) {
      rank = {.state = RankState::kStarting, .durable = rank.durable, .spawned = s.generation};
    }
    s.in_place = false;
  }

  RankStatus* Current(const Event& event) {
    if (event.rank.value() >= state().ranks.size()) return nullptr;
    RankStatus& rank = state().ranks[event.rank.value()];
    return event.generation == rank.spawned ? &rank : nullptr;
  }

  /// From now on a survivor that waits has heard of this generation and waits for the next.
  void Begun() {
    if (state().begun) return;
    state().begun = true;
    for (RankStatus& rank : state().ranks) rank.quiesced = false;
    // A rank died while it was on its way.
    if (state().aborted) Order({.kind = Action::Kind::kAbort});
  }

  void Started(const Event& event) {
    RankStatus* rank = Current(event);
    if (rank == nullptr || rank->state != RankState::kStarting) return;
    Begun();
    rank->state = RankState::kRunning;
    if (state().aborted) KillLoading();
    RunWhenAllStarted();
  }

  void RunWhenAllStarted() {
    const bool starting = std::ranges::any_of(
        state().ranks, [](const RankStatus& r) { return r.state == RankState::kStarting; });
    if (state().phase != Phase::kStarting || starting) return;
    state().phase = Phase::kRunning;
    // Somebody gave up while others were started.
    if (std::ranges::any_of(state().ranks, &RankStatus::quiesced)) AwaitCause();
  }

  void Exited(const Event& event) {
    RankStatus* rank = Current(event);
    if (rank == nullptr || !Alive(*rank)) return;
    rank->ending = event.ending;
    rank->exception = event.text;
    const bool ours = state().phase == Phase::kStopping || state().phase == Phase::kEnding;
    if (ours || rank->doomed) {
      rank->state = RankState::kStopped;
      if (!ours) WithoutDoomed();
      return;
    }
    rank->state = event.ending.ok() ? RankState::kFinished : RankState::kFailed;
    if (state().phase == Phase::kQuiescing) {
      NameOthers();
      GoOnInPlace();
      return;
    }
    if (rank->state == RankState::kFailed) {
      Faulty(event.rank, *rank);
    } else if (AllIn(state(), RankState::kFinished)) {
      // What workers left behind in the background goes too.
      Finish({true, 0, "every rank finished"}, SIGKILL, nanoseconds(0));
    } else {
      RunWhenAllStarted();
    }
    if (state().phase == Phase::kGathering && !AnyAlive(state())) Pause();
  }

  /// None of them is a survivor of another.
  void NodeLost(const Event& event) {
    JobState& s = state();
    const bool ours = s.phase == Phase::kStopping || s.phase == Phase::kEnding;
    const std::size_t end = std::min<std::size_t>(event.rank.value() + event.ranks, s.ranks.size());
    std::optional<Rank> first;
    bool struck = false;
    for (std::uint32_t i = event.rank.value(); i < end; ++i) {
      RankStatus& rank = s.ranks[i];
      if (!Alive(rank)) continue;
      struck = true;
      rank.ending = event.ending;
      rank.exception.clear();
      rank.state = ours || rank.doomed ? RankState::kStopped : RankState::kFailed;
      if (!first && rank.state == RankState::kFailed) first = Rank(i);
    }
    if (!struck || ours) return;
    if (first && s.phase != Phase::kQuiescing) Faulty(*first, s.ranks[first->value()]);
    NameOthers();
    WithoutDoomed();
  }

  void WithoutDoomed() {
    if (state().phase == Phase::kQuiescing) GoOnInPlace();
    if (state().phase == Phase::kGathering && !AnyAlive(state())) Pause();
  }

  Fault FaultOf(Rank number, const RankStatus& rank, const Ending& ending) {
    return {.rank = number,
            .generation = state().generation,
            .spawned = rank.spawned,
            .ending = ending,
            .step = rank.step,
            .steps = rank.steps,
            .refused = rank.refused,
            .exception = rank.exception,
            .alive = rank.alive,
            .lived = now_ - state().began};
  }

  void Faulty(Rank number, const RankStatus& rank) {
    JobState& s = state();
    const bool follows = IsFollower(*rank.ending, rank.steps);
    if (IsCauseRather(*rank.ending, follows)) {
      s.fault = FaultOf(number, rank, *rank.ending);
    }
    // At once, so that survivors unwind while other faults of the same cause are awaited.
    if (!s.aborted && MayGoOnInPlace(s, policy_)) {
      s.aborted = true;
      Order({.kind = Action::Kind::kAbort});
      KillLoading();
    }
    // A follower may be gone before the rank whose fault it tells of.
    const Instant deadline = now_ + (follows ? policy_.follower_wait : policy_.gather);
    s.deadline = s.phase == Phase::kGathering ? std::min(s.deadline, deadline) : deadline;
    s.phase = Phase::kGathering;
  }

  void NameOthers() {
    JobState& s = state();
    if (s.fault && s.fault->generation == s.generation) s.fault->others = OthersOf(s);
  }

  /// Ranks that are new in this generation cannot unwind before they have loaded; to start them
  /// once more costs less than to wait for that.
  void KillLoading() {
    JobState& s = state();
    for (std::uint32_t i = 0; i < s.ranks.size(); ++i) {
      RankStatus& rank = s.ranks[i];
      if (rank.state != RankState::kRunning || rank.doomed || !IsLoading(s, rank)) continue;
      rank.doomed = true;
      Order({.kind = Action::Kind::kKill, .rank = Rank(i)});
    }
  }

  /// A rank gave up because of another one, of which nothing is known yet.
  void AwaitCause() {
    state().phase = Phase::kGathering;
    state().deadline = now_ + policy_.follower_wait;
  }

  /// Nobody died: whoever gave up is the only one that can be named.
  void BlameWhoGaveUp() {
    JobState& s = state();
    if (s.fault && s.fault->generation == s.generation) return;
    for (std::uint32_t i = 0; i < s.ranks.size(); ++i) {
      const RankStatus& rank = s.ranks[i];
      if (!rank.quiesced) continue;
      s.fault = FaultOf(Rank(i), rank, {.code = spec::kFollowerExit, .time = now_});
      return;
    }
  }

  /// Deaths may be reported out of order; the earliest is the cause, the others follow from it. Who
  /// says that it only followed is the cause when nobody else is.
  bool IsCauseRather(const Ending& ending, bool follows) {
    const std::optional<Fault>& fault = state().fault;
    if (!fault || fault->generation != state().generation) return true;
    const bool before_follows = IsFollower(fault->ending, fault->steps);
    if (follows != before_follows) return before_follows;
    return ending.time < fault->ending.time;
  }

  void Tick() {
    JobState& s = state();
    if (now_ < s.deadline) return;
    if (s.phase == Phase::kGathering) {
      Pause();
      return;
    }
    if (s.phase == Phase::kQuiescing) {
      GoOnInPlace();
      if (s.phase == Phase::kQuiescing) StopInstead();
      return;
    }
    if (s.phase != Phase::kStarting) return;
    for (std::uint32_t i = 0; i < s.ranks.size(); ++i) {
      if (s.ranks[i].state != RankState::kStarting) continue;
      s.ranks[i].state = RankState::kFailed;
      s.ranks[i].ending = Ending{.start_error = ETIMEDOUT, .time = now_};
      Faulty(Rank(i), s.ranks[i]);
    }
    if (s.phase == Phase::kGathering) Pause();
  }

  void Pause() {
    JobState& s = state();
    BlameWhoGaveUp();
    NameOthers();
    CountProgress();
    Decision decision = PlanRestart(s, now_, policy_);
    plan_.reason = decision.reason;
    if (!decision.restart) {
      Finish(decision.verdict, SIGTERM, Grace());
      return;
    }
    s.next = decision.restart;
    if (decision.restart == RestartKind::kInPlace) {
      s.phase = Phase::kQuiescing;
      // Whoever is waited for may be in the middle of a step; when nobody is, the next tick goes
      // on.
      s.deadline = AllQuiesced(s) ? now_ : now_ + std::max(policy_.quiesce, 3 * s.slowest_step);
      return;
    }
    OrderStop(Phase::kStopping, SIGTERM, Grace());
  }

  void GoOnInPlace() {
    JobState& s = state();
    if (!MayGoOnInPlace(s, policy_)) return StopInstead();
    if (!AllQuiesced(s)) return;
    CountRestart(RestartKind::kInPlace);
    s.stalled = CameToNoStep(s) ? s.stalled + 1 : 0;
    s.resumed_at = HighestStep(s);
    StartGeneration(RestartKind::kInPlace);
  }

  std::string WhyNotInPlace() {
    for (std::uint32_t i = 0; i < state().ranks.size(); ++i) {
      const RankStatus& rank = state().ranks[i];
      if (rank.state == RankState::kFinished) return fmt::format("rank {} has finished", i);
      if (Alive(rank) && !rank.quiesced) {
        return fmt::format("rank {} did not come to a step boundary in time", i);
      }
    }
    return "no rank is left";
  }

  /// A survivor finished, died too or does not unwind: all ranks are started again.
  void StopInstead() {
    state().next = RestartKind::kProcesses;
    plan_.reason = "not in place, because " + WhyNotInPlace() + ": all ranks start again";
    OrderStop(Phase::kStopping, SIGTERM, Grace());
  }

  /// The deadline is for a shim that does not answer. A second order shortens the grace and never
  /// prolongs it.
  void OrderStop(Phase phase, int signal, nanoseconds grace) {
    JobState& s = state();
    const bool again = s.phase == Phase::kStopping || s.phase == Phase::kEnding;
    const bool bounded = grace < kNever - now_ - policy_.stop_limit;
    const Instant deadline = bounded ? now_ + grace + policy_.stop_limit : kNever;
    s.deadline = again ? std::min(s.deadline, deadline) : deadline;
    s.phase = phase;
    Order({.kind = Action::Kind::kStop, .signal = signal, .grace = grace});
  }

  /// A program on our library holds nothing that is not in a committed checkpoint, so its survivors
  /// are killed at once. What a foreign script does on TERM is not ours to cut short.
  nanoseconds Grace() {
    const bool all_ours = std::ranges::all_of(
        state().ranks, [](const RankStatus& rank) { return rank.steps || !Alive(rank); });
    return all_ours ? nanoseconds(0) : policy_.grace;
  }

  /// Ranks that start anew forget their steps.
  void NoteWork() {
    JobState& s = state();
    s.worked = s.worked ||
               std::ranges::any_of(s.ranks, [](const RankStatus& rank) { return rank.step > 0; });
  }

  void CountProgress() {
    NoteWork();
    JobState& s = state();
    std::uint64_t durable = 0;
    for (const RankStatus& rank : s.ranks) durable = std::max(durable, rank.durable);
    // What survivors carry over is not lost either, and one that had no time for a step lost
    // nothing.
    const bool carries = MayGoOnInPlace(s, policy_);
    const bool carried = carries && HighestStep(s) > s.best_applied;
    if (!carries || !CameToNoStep(s)) ++s.without_progress;
    if (durable > s.best_durable || carried) s.without_progress = 0;
    s.best_durable = std::max(durable, s.best_durable);
    if (carried) s.best_applied = HighestStep(s);
  }

  void Stopped() {
    JobState& s = state();
    // A stop that was ordered twice is answered twice: by then others start.
    if (s.phase != Phase::kStopping && s.phase != Phase::kEnding) return;
    for (RankStatus& rank : s.ranks) {
      if (Alive(rank)) rank.state = RankState::kStopped;
    }
    if (s.phase == Phase::kEnding) {
      s.phase = Phase::kEnded;
      Order({.kind = Action::Kind::kEnd});
      return;
    }
    const RestartKind kind = *s.next;
    if (!std::exchange(s.counted, false)) CountRestart(kind);
    StartGeneration(kind);
  }

  void CountRestart(RestartKind kind) {
    JobState& s = state();
    ++s.restarts;
    s.early_twins = IsEarlyTwin(s, policy_) ? s.early_twins + 1 : 0;
    s.last_fault = s.fault;
    KeepCrash();
    if (kind == RestartKind::kFull) {
      s.full_restarts.push_back(now_);
      s.process_restarts.clear();
    } else if (kind == RestartKind::kProcesses || kind == RestartKind::kInPlace) {
      s.process_restarts.push_back(now_);
    }
  }

  /// Only a generation that came further shows that an older crash was got over.
  void KeepCrash() {
    JobState& s = state();
    const std::uint64_t reached = StepReached(s);
    std::erase_if(s.crashes, [&](const Fault& crash) { return crash.step < reached; });
    if (!s.fault || !s.fault->steps || !IsOwnCrash(s.fault->ending)) return;
    if (s.crashes.size() == kMostCrashes) s.crashes.erase(s.crashes.begin());
    s.crashes.push_back(*s.fault);
  }

  void Interrupt(int signal) {
    JobState& s = state();
    if (s.phase == Phase::kEnded) return;
    if (signal == SIGINT) ++s.interrupts;
    if (s.phase == Phase::kIdle) {
      s.verdict = Interrupted(signal);
      s.phase = Phase::kEnded;
      Order({.kind = Action::Kind::kEnd});
      return;
    }
    // Schedulers and service managers send several signals on one occasion; only Ctrl-C again is a
    // user who will not wait.
    const bool impatient = signal == SIGINT && s.interrupts > 1;
    const nanoseconds grace = impatient ? nanoseconds(0) : policy_.grace;
    // A terminal's Ctrl-C means stop, and TERM is how a program is told to stop.
    Finish(Interrupted(signal), signal == SIGINT ? SIGTERM : signal, grace);
    if (impatient) s.deadline = std::min(s.deadline, now_ + policy_.kill_limit);
  }

  static Verdict Interrupted(int signal) {
    return {false, 128 + signal, fmt::format("interrupted by {}", os::SignalName(signal))};
  }

  /// Stops everything for good. The first verdict stands: a run that failed does not become
  /// "interrupted" because somebody lost patience while it ended.
  void Finish(Verdict verdict, int signal, nanoseconds grace) {
    JobState& s = state();
    if (s.phase == Phase::kEnded) return;
    if (!s.verdict) s.verdict = std::move(verdict);
    if (plan_.reason.empty()) plan_.reason = s.verdict->reason;
    s.next.reset();
    OrderStop(Phase::kEnding, signal, grace);
  }

  const Instant now_;
  const Policy& policy_;
  Plan plan_;
};

}  // namespace

Plan Advance(JobState state, const Event& event, Instant now, const Policy& policy) {
  Step step(std::move(state), now, policy);
  step.Take(event);
  return step.Done();
}

Plan Resume(JobState state, Instant now, const Policy& policy) {
  Step step(std::move(state), now, policy);
  step.Resume();
  return step.Done();
}

}  // namespace muster::agent
