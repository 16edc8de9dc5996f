#include "train/step_timer.h"

namespace muster::train {
namespace {

std::uint32_t Micros(std::chrono::nanoseconds time) {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

}  // namespace

void StepTimer::Begin() {
  begin_ = since_ = clock_->Now();
  spent_.fill(std::chrono::nanoseconds{0});
}

void StepTimer::Account(Instant now) {
  spent_[static_cast<std::size_t>(phase_)] += now - since_;
  since_ = now;
}

void StepTimer::Enter(os::Phase phase) {
  const Instant now = clock_->Now();
  Account(now);
  phase_ = phase;
  heartbeat_->Enter(phase, now);
}

void StepTimer::Publish(std::uint64_t step, double loss) {
  const Instant now = clock_->Now();
  Account(now);
  os::StepRecord record{.step = step,
                        .begin_ns = begin_.time_since_epoch().count(),
                        .total_us = Micros(now - begin_),
                        .loss = static_cast<float>(loss)};
  // The record starts at data: what comes before (init) is no part of a step.
  constexpr auto kFirst = static_cast<std::size_t>(os::Phase::kData);
  for (std::size_t i = 0; i < record.phase_us.size(); ++i) {
    record.phase_us[i] = Micros(spent_[kFirst + i]);
  }
  heartbeat_->Step(record);
}

}  // namespace muster::train
