#include "agent/coordinator/hang_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "profile/report/text.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr nanoseconds kStepFloor = seconds(2);
constexpr nanoseconds kUnknownStep = seconds(30);
constexpr nanoseconds kCheckpoint = seconds(60);
constexpr nanoseconds kEval = seconds(30);
// Nobody looks more rarely but who was kept from it.
constexpr nanoseconds kLongestLook = milliseconds(250);
// Said a little early, so that it is known when the limit is over.
constexpr int kEarlyPercent = 90;

bool IsStep(os::Phase phase) {
  return phase == os::Phase::kData || phase == os::Phase::kForward ||
         phase == os::Phase::kBackward || phase == os::Phase::kOptimizer;
}

bool IsOver(nanoseconds time, nanoseconds limit) { return time >= limit / 100 * kEarlyPercent; }

}  // namespace

void HangWatch::Restart() {
  looked_.reset();
  for (Stuck& stuck : stuck_) stuck = Stuck{};
}

nanoseconds HangWatch::StepLimit() const {
  const auto limit = steps_.Limit();
  return limit ? std::max(kStepFloor, *limit) : kUnknownStep;
}

void HangWatch::Note(Stuck& stuck, const RankSight& sight, nanoseconds passed) {
  const os::Pulse& pulse = sight.pulse;
  const bool moved = pulse.phase != stuck.phase || pulse.phase_since != stuck.phase_since ||
                     pulse.step != stuck.step;
  if (moved || !sight.alive) {
    stuck = Stuck{.phase = pulse.phase, .phase_since = pulse.phase_since, .step = pulse.step};
  } else {
    stuck.moment += passed;
  }
}

void HangWatch::See(Stuck& stuck, const os::ProcessSight& sight, nanoseconds passed) {
  // Dead, and not known to be: its end says more.
  if (sight.state == os::ProcessState::kDead) {
    stuck.moment = stuck.idle = stuck.stopped = {};
    return;
  }
  stuck.traced = sight.state == os::ProcessState::kTraced;
  stuck.stopped =
      sight.state == os::ProcessState::kStopped ? stuck.stopped + passed : nanoseconds(0);
  const bool works = sight.cpu_ticks != stuck.cpu_ticks ||
                     sight.state == os::ProcessState::kRunning ||
                     sight.state == os::ProcessState::kUninterrupted;
  stuck.idle = works ? nanoseconds(0) : stuck.idle + passed;
  stuck.cpu_ticks = sight.cpu_ticks;
}

std::optional<std::string> HangWatch::WhatOf(const Stuck& stuck) const {
  const bool stopped = stuck.stopped > nanoseconds(0);
  const auto say = [&](nanoseconds time) {
    const std::string how =
        stopped ? "stopped by a signal" : fmt::format("in {}", os::NameOf(stuck.phase));
    return how + " for " + profile::FormatSeconds(std::chrono::duration<double>(time).count());
  };
  if (IsStep(stuck.phase) && IsOver(stuck.moment, StepLimit())) return say(stuck.moment);
  if (IsOver(stuck.stopped, StepLimit())) return say(stuck.stopped);
  if (stuck.phase == os::Phase::kCheckpoint && IsOver(stuck.idle, kCheckpoint)) {
    return say(stuck.idle);
  }
  if (stuck.phase == os::Phase::kEval && IsOver(stuck.idle, kEval)) return say(stuck.idle);
  return std::nullopt;
}

std::optional<Hang> HangWatch::Look(const std::vector<RankSight>& ranks, Instant now) {
  const nanoseconds passed =
      looked_ ? std::min(kLongestLook, std::max(nanoseconds(0), now - *looked_)) : nanoseconds(0);
  looked_ = now;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Note(stuck_[i], ranks[i], passed);
    const bool still = ranks[i].alive && stuck_[i].moment > nanoseconds(0);
    if (still && ranks[i].process) See(stuck_[i], *ranks[i].process, passed);
  }
  if (std::ranges::any_of(stuck_, [](const Stuck& stuck) { return stuck.traced; })) {
    return std::nullopt;
  }
  std::optional<std::size_t> worst;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i].alive || stuck_[i].told || !WhatOf(stuck_[i])) continue;
    if (!worst || stuck_[i].moment > stuck_[*worst].moment) worst = i;
  }
  if (!worst) return std::nullopt;
  stuck_[*worst].told = true;
  return Hang{Rank(static_cast<std::uint32_t>(*worst)), *WhatOf(stuck_[*worst])};
}

}  // namespace muster::agent
