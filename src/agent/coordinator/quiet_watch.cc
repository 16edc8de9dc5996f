#include "agent/coordinator/quiet_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/stacks/clusters.h"
#include "profile/report/text.h"

namespace muster::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr nanoseconds kTick = milliseconds(10);  // USER_HZ is 100 on every Linux that we build for
constexpr nanoseconds kShortestLook = milliseconds(50);
constexpr nanoseconds kLongestLook = seconds(15);
constexpr int kBlockedLooks = 3;
constexpr int kIdleShare = 20;  // a thread that wakes up now and then is no work

std::string Ranks(const std::vector<std::uint32_t>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", stacks::RankList(ranks));
}

}  // namespace

void QuietWatch::Restart() {
  for (Seen& seen : ranks_) seen = Seen{};
  finished_ = 0;
  finish_ = {};
  told_.reset();
  acted_.reset();
}

void QuietWatch::See(Rank rank, const os::ProcessSight& process, std::uint64_t io, Instant now) {
  Seen& seen = ranks_[rank.value()];
  const nanoseconds passed = now - seen.at;
  if (seen.at != Instant{} && passed < kShortestLook) return;
  const bool is_new = seen.at == Instant{} || passed > kLongestLook;
  const bool computes =
      (process.cpu_ticks - seen.cpu_ticks) * kTick > std::max(kTick, passed / kIdleShare);
  const bool moved = is_new || io != seen.io || process.state == os::ProcessState::kTraced ||
                     (seen.computes && *seen.computes != computes);
  if (moved) seen.since = now;
  seen.computes = is_new ? std::nullopt : std::optional(computes);
  seen.at = now;
  seen.stopped = process.state == os::ProcessState::kStopped;
  seen.blocked = process.state == os::ProcessState::kUninterrupted ? seen.blocked + 1 : 0;
  seen.cpu_ticks = process.cpu_ticks;
  seen.io = io;
}

std::optional<Quiet> QuietWatch::Look(const std::vector<RankStatus>& ranks, Instant now) {
  Quiet quiet;
  std::size_t finished = 0, computing = 0;
  Instant last{};
  std::optional<Rank> blocked;
  for (std::uint32_t i = 0; i < ranks.size(); ++i) {
    finished += ranks[i].state == RankState::kFinished ? 1 : 0;
    if (ranks[i].state != RankState::kRunning) continue;
    const Seen& seen = ranks_[i];
    if (!seen.computes || now - seen.at > kLongestLook) return std::nullopt;
    computing += *seen.computes ? 1 : 0;
    if (seen.stopped && !quiet.held) quiet.held = Rank(i);
    if (seen.blocked >= kBlockedLooks && !blocked) blocked = Rank(i);
    last = std::max(last, seen.since);
    quiet.ranks.push_back(Rank(i));
  }
  if (!quiet.held) quiet.held = blocked;
  if (finished != finished_) finish_ = now;
  finished_ = finished;
  last = std::max(last, finish_);
  if (quiet.ranks.empty() || computing == quiet.ranks.size()) return std::nullopt;
  const Kind kind = computing > 0 ? Kind::kWait : finished > 0 ? Kind::kLeft : Kind::kIdle;
  const nanoseconds usual = kind == Kind::kLeft   ? nanoseconds(seconds(30))
                            : kind == Kind::kIdle ? nanoseconds(minutes(5))
                                                  : nanoseconds(minutes(10));
  const nanoseconds lasted = now - last;
  quiet.acts = limit_ && lasted >= *limit_;
  std::optional<Instant>& said = quiet.acts ? acted_ : told_;
  if ((!quiet.acts && lasted < usual) || said == last) return std::nullopt;
  said = last;
  quiet.what = WhatOf(ranks, kind, lasted);
  return quiet;
}

std::string QuietWatch::WhatOf(const std::vector<RankStatus>& ranks, Kind kind,
                               nanoseconds lasted) const {
  std::vector<std::uint32_t> idle, busy, done, stopped, blocked;
  for (std::uint32_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].state == RankState::kFinished) done.push_back(i);
    if (ranks[i].state != RankState::kRunning) continue;
    (*ranks_[i].computes ? busy : idle).push_back(i);
    if (ranks_[i].stopped) stopped.push_back(i);
    if (ranks_[i].blocked >= kBlockedLooks) blocked.push_back(i);
  }
  const std::string time = profile::FormatSeconds(std::chrono::duration<double>(lasted).count());
  std::string what =
      fmt::format("{} {} still for {}", Ranks(idle), idle.size() == 1 ? "stands" : "stand", time);
  if (kind == Kind::kWait) {
    what += fmt::format(", while {} {}, all without I/O", Ranks(busy),
                        busy.size() == 1 ? "computes" : "compute");
  } else {
    what += ", without computing and without I/O";
  }
  if (!stopped.empty()) {
    what += fmt::format("; {} {} stopped by a signal", Ranks(stopped),
                        stopped.size() == 1 ? "is" : "are");
  }
  if (!blocked.empty()) {
    what += fmt::format("; {} {} in the kernel (state D)", Ranks(blocked),
                        blocked.size() == 1 ? "waits" : "wait");
  }
  if (!done.empty()) what += fmt::format("; {} finished", Ranks(done));
  return what;
}

}  // namespace muster::agent
