#include "agent/rules/engine.h"

#include <algorithm>
#include <utility>

#include "agent/rules/watch.h"

namespace muster::agent::rules {
namespace {

/// What a rule's patterns cannot do without: rule i's pattern has number 2i, its stop 2i + 1.
std::vector<std::string> LiteralsOf(const std::vector<spec::LogRule>& rules) {
  std::vector<std::string> literals;
  for (const spec::LogRule& rule : rules) {
    for (const std::string* pattern : {&rule.pattern, &rule.stop}) {
      const auto compiled = spec::Pattern::Compile(*pattern);
      literals.push_back(compiled ? compiled->literal() : "");
    }
  }
  return literals;
}

}  // namespace

bool OnlyTells(spec::LogRule::Act action) {
  using Act = spec::LogRule::Act;
  // The last two are told until they are done here.
  return action == Act::kNotify || action == Act::kDump || action == Act::kDrainNode;
}

RuleEngine::RuleEngine(std::vector<std::unique_ptr<Watch>> watches, LiteralFilter filter,
                       std::uint32_t ranks)
    : watches_(std::move(watches)), filter_(std::move(filter)), ranks_(ranks) {
  for (const auto& watch : watches_) {
    always_.push_back(watch->pattern.literal().empty() ? 1 : 0);
    always_.push_back(watch->stop && watch->stop->literal().empty() ? 1 : 0);
  }
}
RuleEngine::RuleEngine(RuleEngine&&) noexcept = default;
RuleEngine& RuleEngine::operator=(RuleEngine&&) noexcept = default;
RuleEngine::~RuleEngine() = default;

Result<RuleEngine> RuleEngine::Create(const std::vector<spec::LogRule>& rules,
                                      std::uint32_t ranks) {
  std::vector<std::unique_ptr<Watch>> watches;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    auto pattern = MUSTER_TRY(Within(rules[i].name, spec::Pattern::Compile(rules[i].pattern)));
    std::optional<spec::Pattern> stop;
    if (!rules[i].stop.empty()) {
      stop = MUSTER_TRY(Within(rules[i].name, spec::Pattern::Compile(rules[i].stop)));
    }
    watches.push_back(std::make_unique<Watch>(rules[i], i, std::move(pattern), std::move(stop)));
  }
  return RuleEngine(std::move(watches), LiteralFilter(LiteralsOf(rules)), ranks);
}

void RuleEngine::Begin(Generation generation, Instant) {
  generation_ = generation;
  judging_ = true;
  next_ = kNever;
  for (const auto& watch : watches_) watch->Begin(ranks_);
}

void RuleEngine::Go(Instant now) {
  for (const auto& watch : watches_) watch->Go(now);
  next_ = now;  // looked for anew by the next Tick
}

void RuleEngine::Resume(Generation generation, Instant now) {
  Begin(generation, now);
  for (const auto& watch : watches_) watch->Resume(now);
  next_ = now;
}

void RuleEngine::Pause() { judging_ = false; }

void RuleEngine::Finish(Rank rank, Instant now) {
  if (!judging_ || rank.value() >= ranks_) return;
  Expire(now);
  for (const auto& watch : watches_) watch->Finish(rank, now);
}

void RuleEngine::Gap(Rank rank, Instant now) {
  if (!judging_ || rank.value() >= ranks_) return;
  for (const auto& watch : watches_) watch->Gap(rank, now);
}

void RuleEngine::Skip(nanoseconds time) {
  for (const auto& watch : watches_) watch->Skip(time);
}

/// Nothing after a deadline can be what was waited for until then.
void RuleEngine::Expire(Instant now) {
  if (now <= next_) return;
  next_ = kNever;
  for (const auto& watch : watches_) {
    watch->Expire(now, false, generation_, firings_);
    next_ = std::min(next_, watch->NextDeadline());
  }
}

void RuleEngine::TakeLine(Rank rank, spec::LogRule::Stream stream, std::string_view line,
                          Instant now) {
  if (!judging_ || rank.value() >= ranks_) return;
  Expire(now);
  found_ = always_;
  filter_.Find(line, found_);
  const Moment moment{rank, now, generation_};
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    if ((found_[2 * i] | found_[2 * i + 1]) == 0) continue;
    Watch& watch = *watches_[i];
    if (!watch.Covers(rank, stream)) continue;
    if (found_[2 * i + 1] != 0) watch.TakeStop(rank, line);
    if (found_[2 * i] == 0 || !watch.TakeLine(moment, line, firings_)) continue;
    // A match may set a deadline where there was none.
    if (watch.rule.every) next_ = std::min(next_, After(now, *watch.rule.every));
  }
}

void RuleEngine::Tick(Instant now) {
  if (!judging_ || now < next_) return;
  next_ = kNever;
  for (const auto& watch : watches_) {
    watch->Expire(now, true, generation_, firings_);
    next_ = std::min(next_, watch->NextDeadline());
  }
}

Instant RuleEngine::NextDeadline() const { return judging_ ? next_ : kNever; }
std::vector<Firing> RuleEngine::TakeFirings() { return std::exchange(firings_, {}); }
std::uint64_t RuleEngine::Matches(std::size_t rule) const { return watches_[rule]->matches; }

}  // namespace muster::agent::rules
