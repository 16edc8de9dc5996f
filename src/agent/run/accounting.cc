#include "agent/run/accounting.h"

#include <algorithm>
#include <utility>

namespace muster::agent {
namespace {

double Seconds(std::chrono::nanoseconds time) {
  return std::max(0.0, std::chrono::duration<double>(time).count());
}

Instant At(std::int64_t ns) { return Instant(std::chrono::nanoseconds(ns)); }

}  // namespace

LostSeconds Accounting::lost() const {
  LostSeconds all = silent_ ? closed_silent_ : closed_;
  all.Add(lost_);
  return all;
}

void Accounting::Began(Instant now) {
  began_ = now;
  if (open_ && stopped_ != Instant{}) again_ = now;
}

void Accounting::FaultStruck(Instant died, Rank number, std::optional<std::uint64_t> step) {
  // Who would have published a step and did not has done nothing that could be lost.
  if (step) silent_ = false;
  struck_early_ = struck_early_ || newest_step_ == 0;
  Close(died);
  ++faults_;
  open_ = true;
  started_ = false;
  worked_s_ = began_ == Instant{} ? 0 : Seconds(died - began_);
  died_ = died;
  paused_ = stopped_ = again_ = restarted_ = start_end_ = Instant{};
  fault_generation_ = 0;
  for (const RankView& rank : ranks_) {
    fault_generation_ = std::max(fault_generation_, rank.generation);
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    RankView& rank = ranks_[i];
    if (i == number.value()) rank.furthest = std::max(rank.furthest, step.value_or(0));
    rank.target = rank.furthest;
    rank.replay_end_ns = 0;
  }
}

/// The next fault or the end came before this one was made up for: what it cost ends here.
void Accounting::Close(Instant now) {
  if (!open_) return;
  open_ = false;
  closed_silent_.Add(SilentLoss(now));
  if (started_) lost_.replay = Seconds(now - start_end_);
  if (!started_ && again_ != Instant{}) lost_.start = Seconds(now - stopped_);
  closed_.Add(std::exchange(lost_, {}));
}

/// What the open fault cost a program of which nobody knows what it had done.
LostSeconds Accounting::SilentLoss(Instant now) const {
  LostSeconds lost = lost_;
  lost.unknown = worked_s_;
  if (restarted_ != Instant{}) now = restarted_;
  if (again_ != Instant{}) lost.start = Seconds(now - stopped_);
  return lost;
}

void Accounting::CloseWithoutStep() {
  open_ = false;
  closed_silent_.Add(SilentLoss(restarted_));
  lost_.start = Seconds(restarted_ - stopped_);
  recovery_ = Recovery{steps(), silent_ ? SilentLoss(restarted_) : lost_, true};
  closed_.Add(std::exchange(lost_, {}));
}

void Accounting::Ended(Instant now, bool succeeded) {
  if (succeeded && open_ && !started_ && restarted_ != Instant{}) CloseWithoutStep();
  Close(now);
}

void Accounting::Paused(Instant now) {
  if (!open_ || paused_ != Instant{}) return;
  paused_ = now;
  lost_.detect = Seconds(now - died_);
}

void Accounting::WorkersStopped(Instant now) {
  if (!open_ || paused_ == Instant{} || stopped_ != Instant{}) return;
  stopped_ = now;
  lost_.stop = Seconds(now - paused_);
}

void Accounting::Restarted(Instant now, bool publishes) {
  if (!open_ || started_ || stopped_ == Instant{} || restarted_ != Instant{}) return;
  restarted_ = now;
  if (!publishes) recovery_ = Recovery{0, SilentLoss(now)};
}

void Accounting::Stepped(Rank number, const os::StepRecord& record) {
  if (number.value() >= ranks_.size()) return;
  silent_ = false;
  RankView& rank = ranks_[number.value()];
  const std::int64_t end_ns = record.begin_ns + std::int64_t{record.total_us} * 1000;
  if (record.generation != rank.generation) {
    rank.generation = record.generation;
    rank.first_begin_ns = record.begin_ns;
    rank.first_step = record.step;
    rank.replay_end_ns = 0;
  }
  if (open_ && record.generation > fault_generation_ && rank.replay_end_ns == 0 &&
      record.step >= rank.target) {
    // Who resumes behind it has nothing to do again.
    rank.replay_end_ns = record.step > rank.target ? record.begin_ns : end_ns;
  }
  rank.furthest = std::max(rank.furthest, record.step);
  if (number.value() == 0) {
    if (first_begin_ns_ == 0) first_begin_ns_ = record.begin_ns;
    last_end_ns_ = std::max(last_end_ns_, end_ns);
    if (record.step > newest_step_) useful_us_ += record.total_us;
    newest_step_ = std::max(newest_step_, record.step);
  }
  if (open_) Settle();
}

void Accounting::Settle() {
  if (stopped_ == Instant{}) return;
  std::int64_t begin_ns = 0;
  std::int64_t replay_end_ns = 0;
  bool replayed = true;
  for (const RankView& rank : ranks_) {
    if (rank.generation <= fault_generation_) return;
    begin_ns = std::max(begin_ns, rank.first_begin_ns);
    replay_end_ns = std::max(replay_end_ns, rank.replay_end_ns);
    replayed = replayed && rank.replay_end_ns != 0;
  }
  if (!started_) {
    started_ = true;
    start_end_ = At(begin_ns);
    lost_.start = Seconds(start_end_ - stopped_);
    recovery_ = Recovery{ranks_[0].first_step - 1, lost_};
  }
  if (replayed) SettleReplay(At(replay_end_ns));
}

void Accounting::SettleReplay(Instant end) {
  open_ = false;
  const bool again = std::ranges::any_of(
      ranks_, [](const RankView& rank) { return rank.first_step <= rank.target; });
  if (again) {
    lost_.replay = Seconds(end - start_end_);
    replay_ = Replay{std::ranges::min(ranks_, {}, &RankView::first_step).first_step,
                     std::ranges::max(ranks_, {}, &RankView::target).target, lost_};
  }
  closed_.Add(std::exchange(lost_, {}));
}

std::uint64_t Accounting::steps() const {
  return std::ranges::max(ranks_, {}, &RankView::furthest).furthest;
}

bool Accounting::AllStepped(Generation generation) const {
  return std::ranges::all_of(ranks_, [&](const RankView& rank) {
    return rank.generation == static_cast<std::uint32_t>(generation.value());
  });
}

std::optional<Recovery> Accounting::TakeRecovery() { return std::exchange(recovery_, {}); }

std::optional<Replay> Accounting::TakeReplay() { return std::exchange(replay_, {}); }

std::optional<double> Accounting::Goodput() const {
  const std::int64_t wall_ns = last_end_ns_ - first_begin_ns_;
  if (newest_step_ == 0 || wall_ns <= 0) return std::nullopt;
  return std::min(1.0, static_cast<double>(useful_us_) * 1000.0 / static_cast<double>(wall_ns));
}

}  // namespace muster::agent
