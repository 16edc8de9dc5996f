#include "agent/run/accounting.h"

#include <algorithm>

namespace muster::agent {
namespace {

double Seconds(std::chrono::nanoseconds time) {
  return std::max(0.0, std::chrono::duration<double>(time).count());
}

Instant At(std::int64_t ns) { return Instant(std::chrono::nanoseconds(ns)); }

}  // namespace

void Accounting::FaultStruck(Instant died, std::uint64_t step) {
  CloseReplay(died);
  open_ = true;
  started_ = false;
  died_ = died;
  paused_ = stopped_ = start_end_ = Instant{};
  fault_step_ = step;
  fault_generation_ = 0;
  for (const RankView& rank : ranks_) {
    fault_generation_ = std::max(fault_generation_, rank.generation);
  }
  for (RankView& rank : ranks_) rank.replay_end_ns = 0;
}

/// The next fault came before the last one was made up for: what it cost ends here.
void Accounting::CloseReplay(Instant now) {
  if (!open_) return;
  if (started_) {
    lost_.replay_s += Seconds(now - start_end_);
  } else if (stopped_ != Instant{}) {
    lost_.start_s += Seconds(now - stopped_);
  }
  open_ = false;
}

void Accounting::Paused(Instant now) {
  if (!open_ || paused_ != Instant{}) return;
  paused_ = now;
  lost_.detect_s += Seconds(now - died_);
}

void Accounting::WorkersStopped(Instant now) {
  if (!open_ || paused_ == Instant{} || stopped_ != Instant{}) return;
  stopped_ = now;
  lost_.stop_s += Seconds(now - paused_);
}

void Accounting::Restarted(Instant now) {
  if (!open_ || started_ || stopped_ == Instant{}) return;
  lost_.start_s += Seconds(now - stopped_);
  recovery_ = Recovery{0, Seconds(now - died_)};
  open_ = false;
}

void Accounting::Stepped(Rank number, const os::StepRecord& record) {
  if (number.value() >= ranks_.size()) return;
  RankView& rank = ranks_[number.value()];
  const std::int64_t end_ns = record.begin_ns + std::int64_t{record.total_us} * 1000;
  if (record.generation != rank.generation) {
    rank = RankView{.generation = record.generation,
                    .first_begin_ns = record.begin_ns,
                    .first_end_ns = end_ns,
                    .first_step = record.step};
  }
  if (open_ && record.generation > fault_generation_ && rank.replay_end_ns == 0 &&
      record.step >= fault_step_) {
    rank.replay_end_ns = end_ns;
  }
  if (number.value() == 0) {
    if (first_begin_ns_ == 0) first_begin_ns_ = record.begin_ns;
    last_end_ns_ = std::max(last_end_ns_, end_ns);
    if (record.step > newest_step_) useful_us_ += record.total_us;
  }
  newest_step_ = number.value() == 0 ? std::max(newest_step_, record.step) : newest_step_;
  if (open_) Settle();
}

void Accounting::Settle() {
  if (stopped_ == Instant{}) return;
  std::int64_t begin_ns = 0;
  std::int64_t first_end_ns = 0;
  std::int64_t replay_end_ns = 0;
  bool replayed = true;
  for (const RankView& rank : ranks_) {
    if (rank.generation <= fault_generation_) return;
    begin_ns = std::max(begin_ns, rank.first_begin_ns);
    first_end_ns = std::max(first_end_ns, rank.first_end_ns);
    replay_end_ns = std::max(replay_end_ns, rank.replay_end_ns);
    replayed = replayed && rank.replay_end_ns != 0;
  }
  if (!started_) {
    started_ = true;
    start_end_ = At(begin_ns);
    lost_.start_s += Seconds(start_end_ - stopped_);
    recovery_ = Recovery{ranks_[0].first_step - 1, Seconds(At(first_end_ns) - died_)};
  }
  if (!replayed) return;
  // Nothing had to be done again when the new generation began behind the fault.
  const bool again = std::ranges::any_of(
      ranks_, [&](const RankView& rank) { return rank.first_step <= fault_step_; });
  if (again) lost_.replay_s += Seconds(At(replay_end_ns) - start_end_);
  open_ = false;
}

bool Accounting::AllStepped(Generation generation) const {
  return std::ranges::all_of(ranks_, [&](const RankView& rank) {
    return rank.generation == static_cast<std::uint32_t>(generation.value());
  });
}

std::optional<Recovery> Accounting::TakeRecovery() { return std::exchange(recovery_, {}); }

std::optional<double> Accounting::Goodput() const {
  const std::int64_t wall_ns = last_end_ns_ - first_begin_ns_;
  if (newest_step_ == 0 || wall_ns <= 0) return std::nullopt;
  return std::min(1.0, static_cast<double>(useful_us_) * 1000.0 / static_cast<double>(wall_ns));
}

}  // namespace muster::agent
