#pragma once
// One rule at work on one generation: its states, of which there is one a job or (scope each) one a
// rank, and what makes them fire. Internal to this folder; RuleEngine feeds it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/rules/engine.h"

namespace muster::agent::rules {

/// What happened, for a watch to judge.
struct Moment {
  Rank rank;
  Instant now;
  Generation generation;
};

inline Instant After(Instant from, nanoseconds time) {
  return time > kNever - from ? kNever : from + time;
}

struct RuleEngine::Watch {
  Watch(const spec::LogRule& rule, std::size_t number, spec::Pattern pattern,
        std::optional<spec::Pattern> stop);

  void Begin(std::uint32_t ranks);
  /// The start cut-off counts from here.
  void Go(Instant now);
  /// Behind Begin: as if a line had matched just now.
  void Resume(Instant now);
  void Finish(Rank rank, Instant now);
  void Gap(Rank rank, Instant now);
  void Skip(nanoseconds time);
  /// The line holds what the pattern needs. True when it matched.
  bool TakeLine(const Moment& moment, std::string_view line, std::vector<Firing>& out);
  void TakeStop(Rank rank, std::string_view line);
  bool Covers(Rank rank, spec::LogRule::Stream stream) const;
  /// Fires what was due before `now`, or at `now` as well.
  void Expire(Instant now, bool at_too, Generation generation, std::vector<Firing>& out);
  Instant NextDeadline() const;

  const spec::LogRule rule;
  const std::size_t number;
  const spec::Pattern pattern;
  const std::optional<spec::Pattern> stop;
  std::uint64_t matches = 0;

 private:
  enum class Value { kNone, kGood, kSlow, kFault };
  struct State {
    bool done = false;             ///< fired or stopped: nothing more in this generation
    bool told = false;             ///< of the silence that lasts
    std::optional<Instant> match;  ///< the last one
    Rank speaker;                  ///< whose it was
    std::uint32_t in_a_row = 0;    ///< values that break the threshold
    Instant quiet_until{};         ///< for who only tells
    std::uint64_t kept_back = 0;   ///< while it was quiet
  };
  State& StateOf(Rank rank);
  Instant DeadlineOf(const State& state) const;
  Value Judge(std::optional<std::string_view> group) const;
  bool CompletesRound(Rank rank, Value& value);
  void Matched(State& state, const Moment& moment);
  void JudgeValue(State& state, const Moment& moment, Value value, std::string_view shown,
                  std::vector<Firing>& out);
  std::string Slow(std::string_view shown) const;
  void Fire(State& state, const Moment& moment, std::string why, std::vector<Firing>& out);
  void FireSilence(State& state, std::size_t place, Generation generation, Instant deadline,
                   std::vector<Firing>& out);
  Rank Silent(const State& state, std::size_t place) const;
  std::string Silence(const State& state) const;
  bool AllFinished() const;

  std::vector<State> states_;
  std::optional<Instant> go_;
  std::vector<bool> finished_;               ///< by rank
  std::vector<std::optional<Value>> round_;  ///< scope all: by rank, what it showed
};

}  // namespace muster::agent::rules
