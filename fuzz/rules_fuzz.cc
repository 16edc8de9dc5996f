// Any pattern on any bytes at any times: the filter hides no line that the pattern finds, what
// fires names a rank that is there and a time that has come and is plain text, and an action that
// ends a generation fires once in it. The same bytes as an old log: its stamps never go back.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "agent/logs/line_framer.h"
#include "agent/rules/engine.h"
#include "agent/rules/line_time.h"
#include "agent/rules/replay.h"
#include "base/text.h"

namespace {

using namespace muster;
using agent::rules::RuleEngine;
using spec::LogRule;

constexpr std::uint32_t kRanks = 3;

void Demand(bool holds) {
  if (!holds) std::abort();
}

LogRule RuleFrom(std::string pattern, unsigned bits) {
  LogRule rule{.name = "r", .pattern = std::move(pattern)};
  rule.scope = static_cast<LogRule::Scope>(bits % 4);
  rule.on_non_number = static_cast<LogRule::NonNumber>(bits / 4 % 3);
  rule.action = (bits & 16) != 0 ? LogRule::Act::kNotify : LogRule::Act::kFail;
  rule.fault = (bits & 32) != 0;
  if ((bits & 64) != 0) rule.every = std::chrono::seconds(2);
  if ((bits & 128) != 0) rule.start_within = std::chrono::seconds(3);
  return rule;
}

void Judge(const LogRule& rule, std::string_view text) {
  const auto pattern = spec::Pattern::Compile(rule.pattern);
  if (!pattern) return;
  RuleEngine engine = *RuleEngine::Create({rule}, kRanks);
  Instant now{std::chrono::seconds(1)};
  engine.Begin(Generation(1), now);
  engine.Go(now);
  std::uint64_t matches = 0;
  std::size_t acted = 0;
  const bool counts = rule.action == LogRule::Act::kNotify && rule.scope != LogRule::Scope::kRank0;
  agent::LineFramer framer;
  framer.Feed(text, [&](std::string_view line, bool continued) {
    if (continued) return;
    now += std::chrono::milliseconds(line.size() % 7 * 500);
    engine.TakeLine(Rank(line.size() % kRanks), LogRule::Stream::kOut, line, now);
    matches += pattern->IsIn(line) ? 1 : 0;
    for (const auto& firing : engine.TakeFirings()) {
      Demand(firing.rank.value() < kRanks && firing.time <= now);
      Demand(IsUtf8(firing.why) && firing.why.find('\n') == std::string::npos);
      acted += agent::rules::OnlyTells(firing.action) ? 0 : 1;
    }
  });
  // A rule that only tells goes on matching whatever it told.
  if (counts) Demand(engine.Matches(0) == matches);
  Demand(acted <= (rule.scope == LogRule::Scope::kEach ? kRanks : 1));
}

void Play(const LogRule& rule, std::string_view text) {
  const auto replayed = agent::rules::Replay({rule}, {{{Rank(0), Generation(1)}, "log", text}});
  if (!replayed || !replayed->first) return;
  Demand(*replayed->first <= *replayed->last);
  for (const auto& fired : replayed->firings) {
    Demand(fired.firing.time.time_since_epoch() <= *replayed->last);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data + 2), size - 2);
  const std::size_t cut = std::min<std::size_t>(data[0], all.size());
  const LogRule rule = RuleFrom(std::string(all.substr(0, cut)), data[1]);
  Judge(rule, all.substr(cut));
  Play(rule, all.substr(cut));
  const auto threshold = spec::ParseThreshold(all);
  if (threshold) Demand(spec::ParseThreshold(spec::FormatThreshold(*threshold)) == *threshold);
  return 0;
}
