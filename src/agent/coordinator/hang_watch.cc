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
constexpr nanoseconds kBlocked = seconds(5);
constexpr nanoseconds kCollective = seconds(30);
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
    stuck.moment = stuck.idle = stuck.stopped = stuck.blocked = {};
    return;
  }
  stuck.traced = sight.state == os::ProcessState::kTraced;
  stuck.stopped =
      sight.state == os::ProcessState::kStopped ? stuck.stopped + passed : nanoseconds(0);
  const bool blocked = sight.state == os::ProcessState::kUninterrupted;
  const bool computes =
      sight.cpu_ticks != stuck.cpu_ticks || sight.state == os::ProcessState::kRunning;
  stuck.idle = computes || blocked ? nanoseconds(0) : stuck.idle + passed;
  stuck.blocked = blocked && !computes ? stuck.blocked + passed : nanoseconds(0);
  stuck.cpu_ticks = sight.cpu_ticks;
}

std::string HangWatch::Say(const Stuck& stuck, nanoseconds time) {
  std::string how = fmt::format("in {}", os::NameOf(stuck.phase));
  if (stuck.stopped > nanoseconds(0)) how = "stopped by a signal";
  if (stuck.blocked > nanoseconds(0)) how += ", waiting in the kernel (state D),";
  return how + " for " + profile::FormatSeconds(std::chrono::duration<double>(time).count());
}

std::optional<std::string> HangWatch::WhatOf(const Stuck& stuck) const {
  if (IsStep(stuck.phase) && IsOver(stuck.moment, StepLimit())) return Say(stuck, stuck.moment);
  if (IsOver(stuck.stopped, StepLimit())) return Say(stuck, stuck.stopped);
  // No collective waits like that; a save or an evaluation on a slow disk does.
  if (stuck.phase == os::Phase::kComm && IsOver(stuck.blocked, std::max(kBlocked, StepLimit()))) {
    return Say(stuck, stuck.blocked);
  }
  if (stuck.phase == os::Phase::kCheckpoint && IsOver(stuck.idle, kCheckpoint)) {
    return Say(stuck, stuck.idle);
  }
  if (stuck.phase == os::Phase::kEval && IsOver(stuck.idle, kEval)) return Say(stuck, stuck.idle);
  return std::nullopt;
}

/// Every rank has been in a collective for long, and none is known to have a reason of its own.
std::optional<std::size_t> HangWatch::WhoKeepsAll(std::span<const RankSight> ranks) const {
  const auto limit = steps_.Limit();
  if (!limit || ranks.empty()) return std::nullopt;
  std::size_t first = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const bool waits = ranks[i].alive && stuck_[i].phase == os::Phase::kComm;
    if (!waits || !IsOver(stuck_[i].moment, std::max(kCollective, *limit))) return std::nullopt;
    if (ranks[i].pulse.collective < ranks[first].pulse.collective) first = i;
  }
  return first;
}

std::optional<Hang> HangWatch::Look(std::span<const RankSight> ranks, Instant now) {
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
  const auto last = worst ? std::nullopt : WhoKeepsAll(ranks);
  if (last && !stuck_[*last].told) worst = last;
  if (!worst) return std::nullopt;
  Stuck& stuck = stuck_[*worst];
  stuck.told = true;
  return Hang{Rank(static_cast<std::uint32_t>(*worst)),
              last ? Say(stuck, stuck.moment) + ", as all ranks are" : *WhatOf(stuck)};
}

}  // namespace muster::agent
