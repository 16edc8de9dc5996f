#include "agent/rules/watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "base/text.h"

namespace muster::agent::rules {
namespace {

using Scope = spec::LogRule::Scope;
using Stream = spec::LogRule::Stream;
using NonNumber = spec::LogRule::NonNumber;

constexpr std::size_t kMostShown = 120;

std::string Shown(std::string_view text) { return CutText(PlainLine(text), kMostShown); }

}  // namespace

RuleEngine::Watch::Watch(const spec::LogRule& what, std::size_t place, spec::Pattern compiled,
                         std::optional<spec::Pattern> compiled_stop)
    : rule(what), number(place), pattern(std::move(compiled)), stop(std::move(compiled_stop)) {}

void RuleEngine::Watch::Begin(std::uint32_t ranks) {
  states_.assign(rule.scope == Scope::kEach ? ranks : 1, State{});
  finished_.assign(ranks, false);
  round_.assign(rule.scope == Scope::kAll ? ranks : 0, std::nullopt);
  go_.reset();
  matches = 0;
}

void RuleEngine::Watch::Go(Instant now) { go_ = now; }

void RuleEngine::Watch::Resume(Instant now) {
  go_ = now;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    states_[i].match = now;
    states_[i].speaker = Rank(static_cast<std::uint32_t>(i));
  }
}

bool RuleEngine::Watch::AllFinished() const {
  return std::ranges::all_of(finished_, [](bool finished) { return finished; });
}

void RuleEngine::Watch::Finish(Rank rank, Instant now) {
  finished_[rank.value()] = true;
  if (rule.scope == Scope::kEach || (rule.scope == Scope::kRank0 && rank == Rank(0)) ||
      AllFinished()) {
    StateOf(rank).done = true;
  } else if (rule.scope == Scope::kAll) {
    // The others had waited for it; they get their time from here.
    State& state = states_[0];
    if (state.match) state.match = std::max(*state.match, now);
  }
}

void RuleEngine::Watch::Gap(Rank rank, Instant now) {
  if (rule.scope == Scope::kRank0 && rank != Rank(0)) return;
  State& state = StateOf(rank);
  state.in_a_row = 0;
  if (state.match) {
    state.match = std::max(*state.match, now);
  } else if (go_) {
    go_ = std::max(*go_, now);
  }
}

void RuleEngine::Watch::Skip(nanoseconds time) {
  if (go_) *go_ += time;
  for (State& state : states_) {
    if (state.match) *state.match += time;
  }
}

RuleEngine::Watch::State& RuleEngine::Watch::StateOf(Rank rank) {
  return states_[rule.scope == Scope::kEach ? rank.value() : 0];
}

bool RuleEngine::Watch::Covers(Rank rank, Stream stream) const {
  if (rule.stream != Stream::kBoth && rule.stream != stream) return false;
  return rule.scope != Scope::kRank0 || rank == Rank(0);
}

void RuleEngine::Watch::TakeStop(Rank rank, std::string_view line) {
  if (stop && stop->IsIn(line)) StateOf(rank).done = true;
}

bool RuleEngine::Watch::TakeLine(const Moment& moment, std::string_view line,
                                 std::vector<Firing>& out) {
  State& state = StateOf(moment.rank);
  if (state.done) return false;
  std::optional<std::string_view> group;
  if (!pattern.Find(line, group)) return false;
  ++matches;
  Value value = Judge(group);
  if (rule.scope == Scope::kAll && !CompletesRound(moment.rank, value)) return true;
  Matched(state, moment);
  JudgeValue(state, moment, value, group.value_or(line), out);
  return true;
}

RuleEngine::Watch::Value RuleEngine::Watch::Judge(std::optional<std::string_view> group) const {
  if (!group) return Value::kNone;
  if (const auto value = spec::ParseFinite(*group)) {
    return rule.threshold && rule.threshold->IsBroken(*value) ? Value::kSlow : Value::kGood;
  }
  switch (rule.on_non_number) {
    case NonNumber::kSlow:
      return Value::kSlow;
    case NonNumber::kFault:
      return Value::kFault;
    case NonNumber::kIgnore:
      break;
  }
  return Value::kNone;
}

/// A round is a match of every rank that still runs; it is as good as the best of them, so that it
/// is bad only where all are.
bool RuleEngine::Watch::CompletesRound(Rank rank, Value& value) {
  round_[rank.value()] = value;
  for (std::size_t i = 0; i < round_.size(); ++i) {
    if (!round_[i] && !finished_[i]) return false;
  }
  for (auto& shown : round_) {
    if (shown) value = std::min(value, *shown);
    shown.reset();
  }
  return true;
}

void RuleEngine::Watch::Matched(State& state, const Moment& moment) {
  state.match = moment.now;
  state.speaker = moment.rank;
  state.told = false;
}

void RuleEngine::Watch::JudgeValue(State& state, const Moment& moment, Value value,
                                   std::string_view shown, std::vector<Firing>& out) {
  if (rule.fault) return Fire(state, moment, fmt::format("'{}' matched", Shown(shown)), out);
  switch (value) {
    case Value::kNone:
      break;
    case Value::kGood:
      state.in_a_row = 0;
      break;
    case Value::kFault:
      Fire(state, moment, fmt::format("'{}' is not a number", Shown(shown)), out);
      break;
    case Value::kSlow:
      if (++state.in_a_row < rule.points) break;
      state.in_a_row = 0;
      Fire(state, moment, Slow(shown), out);
      break;
  }
}

std::string RuleEngine::Watch::Slow(std::string_view shown) const {
  std::string why = Shown(shown);
  if (!spec::ParseFinite(shown)) why += " (not a number)";
  if (rule.points > 1) why += fmt::format(", the last of {} values in a row", rule.points);
  if (rule.threshold) why += fmt::format(", {}", FormatThreshold(*rule.threshold));
  return why;
}

void RuleEngine::Watch::Fire(State& state, const Moment& moment, std::string why,
                             std::vector<Firing>& out) {
  if (OnlyTells(rule.action)) {
    if (moment.now < state.quiet_until) {
      ++state.kept_back;
      return;
    }
    state.quiet_until = After(moment.now, kQuiet);
    if (state.kept_back > 0) why += fmt::format(" ({} more before)", state.kept_back);
    state.kept_back = 0;
  } else {
    state.done = true;
  }
  out.push_back({.rule = number,
                 .name = rule.name,
                 .action = rule.action,
                 .generation = moment.generation,
                 .rank = moment.rank,
                 .why = std::move(why),
                 .time = moment.now});
}

Instant RuleEngine::Watch::DeadlineOf(const State& state) const {
  if (state.done || state.told || !go_) return kNever;
  if (state.match) return rule.every ? After(*state.match, *rule.every) : kNever;
  return rule.start_within ? After(*go_, *rule.start_within) : kNever;
}

Instant RuleEngine::Watch::NextDeadline() const {
  Instant next = kNever;
  for (const State& state : states_) next = std::min(next, DeadlineOf(state));
  return next;
}

void RuleEngine::Watch::Expire(Instant now, bool at_too, Generation generation,
                               std::vector<Firing>& out) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const Instant deadline = DeadlineOf(states_[i]);
    if (deadline < now || (at_too && deadline == now && deadline != kNever)) {
      FireSilence(states_[i], i, generation, deadline, out);
    }
  }
}

/// Who is to blame for a silence; of a rule about the whole job, who spoke last.
Rank RuleEngine::Watch::Silent(const State& state, std::size_t place) const {
  if (rule.scope == Scope::kEach || rule.scope == Scope::kRank0) {
    return Rank(static_cast<std::uint32_t>(place));
  }
  if (rule.scope == Scope::kAny && state.match && !finished_[state.speaker.value()]) {
    return state.speaker;
  }
  for (std::uint32_t i = 0; i < finished_.size(); ++i) {
    const bool spoke = rule.scope == Scope::kAll && round_[i];
    if (!finished_[i] && !spoke) return Rank(i);
  }
  return Rank(0);
}

std::string RuleEngine::Watch::Silence(const State& state) const {
  std::string how_long =
      state.match ? fmt::format("for {}", FormatExact(*rule.every))
                  : fmt::format("within {} of the start", FormatExact(*rule.start_within));
  if (rule.scope == Scope::kAny && state.match) {
    how_long += fmt::format("; rank {} showed the last one", state.speaker.value());
  }
  if (rule.scope != Scope::kAll) return "no line matched " + how_long;
  std::string missing;
  for (std::size_t i = 0; i < round_.size() && missing.size() < kMostShown; ++i) {
    if (!round_[i] && !finished_[i]) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", i);
  }
  return fmt::format("not every rank showed a matching line {}; missing: {}", how_long, missing);
}

void RuleEngine::Watch::FireSilence(State& state, std::size_t place, Generation generation,
                                    Instant deadline, std::vector<Firing>& out) {
  const Moment moment{Silent(state, place), deadline, generation};
  std::string why = Silence(state);
  // A silence is told when it begins, whatever was told before.
  state.quiet_until = Instant{};
  Fire(state, moment, std::move(why), out);
  state.told = true;
  state.in_a_row = 0;
}

}  // namespace muster::agent::rules
