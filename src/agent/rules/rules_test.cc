#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "agent/rules/engine.h"
#include "base/rng.h"

namespace muster::agent::rules {
namespace {

using spec::LogRule;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Act = LogRule::Act;
using Scope = LogRule::Scope;
using Stream = LogRule::Stream;

constexpr Instant At(double s) {
  return Instant(std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(1000 + s)));
}

/// A job under one rule, begun and gone at 0 s.
class Bench {
 public:
  explicit Bench(const LogRule& rule, std::uint32_t ranks = 2)
      : engine_(*RuleEngine::Create({rule}, ranks)) {
    engine_.Begin(Generation(1), At(0));
    engine_.Go(At(0));
  }
  RuleEngine* operator->() { return &engine_; }
  void Line(double s, std::uint32_t rank, std::string_view text, Stream stream = Stream::kOut) {
    engine_.TakeLine(Rank(rank), stream, text, At(s));
  }
  /// "RANK@SECONDS why" of what fired by then.
  std::vector<std::string> Fired(double s) {
    engine_.Tick(At(s));
    std::vector<std::string> fired;
    for (const Firing& firing : engine_.TakeFirings()) {
      const auto time = std::chrono::duration<double>(firing.time - At(0)).count();
      fired.push_back(fmt::format("{}@{} {}", firing.rank.value(), time, firing.why));
    }
    return fired;
  }

 private:
  RuleEngine engine_;
};

LogRule Rule(std::string pattern) { return {.name = "r", .pattern = std::move(pattern)}; }

TEST(StartWithin, FiresWhenNoLineMatchedInTime) {
  LogRule rule = Rule("ready");
  rule.start_within = minutes(2);
  Bench bench(rule);
  bench.Line(60, 0, "not yet");
  EXPECT_THAT(bench.Fired(119.9), IsEmpty());
  EXPECT_THAT(bench.Fired(120), ElementsAre("0@120 no line matched within 2m of the start"));
}

TEST(StartWithin, CountsAsMetWhereOthersJudgedBefore) {
  LogRule rule = Rule("ready");
  rule.start_within = minutes(2);
  rule.every = minutes(3);
  Bench bench(rule);
  bench->Resume(Generation(1), At(10));
  EXPECT_THAT(bench.Fired(189.9), IsEmpty());
  EXPECT_THAT(bench.Fired(190), ElementsAre(HasSubstr("0@190")));
}

TEST(StartWithin, CountsFromGoAndNotFromTheBeginning) {
  LogRule rule = Rule("ready");
  rule.start_within = seconds(10);
  Bench bench(rule);
  bench->Begin(Generation(2), At(100));
  EXPECT_EQ(bench->NextDeadline(), kNever);
  EXPECT_THAT(bench.Fired(150), IsEmpty());
  bench->Go(At(160));
  EXPECT_THAT(bench.Fired(169), IsEmpty());
  EXPECT_THAT(bench.Fired(170), ElementsAre("0@170 no line matched within 10s of the start"));
}

TEST(StartWithin, IsMetByALineAtTheDeadlineItself) {
  LogRule rule = Rule("ready");
  rule.start_within = seconds(10);
  Bench bench(rule);
  bench.Line(10, 1, "ready");
  EXPECT_THAT(bench.Fired(1000), IsEmpty());
}

TEST(Every, CountsFromTheLastMatch) {
  LogRule rule = Rule("step");
  rule.every = seconds(4);
  Bench bench(rule);
  EXPECT_THAT(bench.Fired(100), IsEmpty()) << "before a first match nothing is expected";
  bench.Line(101, 1, "step 1");
  bench.Line(104, 1, "step 2");
  EXPECT_EQ(bench->NextDeadline(), At(105)) << "may be early, never late";
  EXPECT_THAT(bench.Fired(107.9), IsEmpty());
  EXPECT_THAT(bench.Fired(108),
              ElementsAre("1@108 no line matched for 4s; rank 1 showed the last one"));
}

TEST(Every, FiresBeforeALateLineIsLookedAt) {
  LogRule rule = Rule("step");
  rule.every = seconds(4);
  rule.action = Act::kNotify;
  Bench bench(rule);
  bench.Line(0, 0, "step");
  bench.Line(9, 0, "step");
  EXPECT_THAT(bench.Fired(9),
              ElementsAre("0@4 no line matched for 4s; rank 0 showed the last one"));
  EXPECT_THAT(bench.Fired(13),
              ElementsAre("0@13 no line matched for 4s; rank 0 showed the last one"));
  EXPECT_THAT(bench.Fired(60), IsEmpty()) << "one silence is told once";
}

TEST(State, BeginsAnewWithEachGeneration) {
  LogRule rule = Rule("v=(.*)");
  rule.threshold = spec::Threshold{spec::Threshold::Operator::kAbove, 5};
  rule.points = 3;
  Bench bench(rule);
  bench.Line(1, 0, "v=9");
  bench.Line(2, 0, "v=9");
  bench->Begin(Generation(2), At(3));
  bench->Go(At(3));
  bench.Line(4, 0, "v=9");
  EXPECT_THAT(bench.Fired(5), IsEmpty());
}

TEST(State, IsSuspendedDuringAPause) {
  LogRule rule = Rule("step (.*)");
  rule.start_within = seconds(5);
  rule.every = seconds(5);
  Bench bench(rule);
  bench.Line(1, 0, "step 1");
  bench->Pause();
  EXPECT_EQ(bench->NextDeadline(), kNever);
  bench.Line(2, 0, "step nan");
  EXPECT_THAT(bench.Fired(100), IsEmpty());
}

TEST(Scope, AnyTakesAMatchOfAnyRank) {
  LogRule rule = Rule("step");
  rule.every = seconds(4);
  Bench bench(rule);
  for (int s = 0; s < 40; s += 3) bench.Line(s, static_cast<std::uint32_t>(s % 2), "step");
  EXPECT_THAT(bench.Fired(40), IsEmpty());
}

TEST(Scope, AllWantsAMatchOfEveryRankAndNamesWhoIsMissing) {
  LogRule rule = Rule("step");
  rule.start_within = seconds(10);
  rule.every = seconds(4);
  rule.scope = Scope::kAll;
  Bench bench(rule, 3);
  for (std::uint32_t rank : {0U, 1U, 2U}) bench.Line(1, rank, "step");
  for (int s = 2; s < 5; ++s) bench.Line(s, 0, "step");
  EXPECT_THAT(bench.Fired(5),
              ElementsAre("1@5 not every rank showed a matching line for 4s; missing: 1, 2"));
}

TEST(Scope, AllFiresOnAValueOnlyWhenItIsBadEverywhere) {
  LogRule rule = Rule("v=(.*)");
  rule.threshold = spec::Threshold{spec::Threshold::Operator::kBelow, 5};
  rule.scope = Scope::kAll;
  Bench bench(rule);
  bench.Line(1, 0, "v=1");
  bench.Line(1, 1, "v=9");
  EXPECT_THAT(bench.Fired(1), IsEmpty());
  bench.Line(2, 0, "v=1");
  bench.Line(2, 1, "v=2");
  EXPECT_THAT(bench.Fired(2), ElementsAre("1@2 2, < 5"));
}

TEST(Scope, AllDoesNotWaitForARankThatFinished) {
  LogRule rule = Rule("step");
  rule.every = seconds(4);
  rule.scope = Scope::kAll;
  Bench bench(rule);
  bench.Line(1, 0, "step");
  bench.Line(1, 1, "step");
  bench->Finish(Rank(1), At(2));
  bench.Line(3, 0, "step");
  EXPECT_THAT(bench.Fired(6.5), IsEmpty());
  EXPECT_THAT(bench.Fired(7),
              ElementsAre("0@7 not every rank showed a matching line for 4s; missing: 0"));
}

TEST(Scope, Rank0LooksAtRank0Only) {
  LogRule rule = Rule("loss=(.*)");
  rule.start_within = seconds(5);
  rule.scope = Scope::kRank0;
  Bench bench(rule);
  bench.Line(1, 1, "loss=nan");
  EXPECT_THAT(bench.Fired(5), ElementsAre("0@5 no line matched within 5s of the start"));
}

TEST(Scope, EachLooksAtEveryRankByItself) {
  LogRule rule = Rule("step");
  rule.start_within = seconds(5);
  rule.scope = Scope::kEach;
  Bench bench(rule, 3);
  bench.Line(1, 1, "step");
  EXPECT_THAT(bench.Fired(9), ElementsAre("0@5 no line matched within 5s of the start",
                                          "2@5 no line matched within 5s of the start"));
}

TEST(Scope, EachExpectsNothingOfARankThatFinished) {
  LogRule rule = Rule("step");
  rule.every = seconds(5);
  rule.scope = Scope::kEach;
  Bench bench(rule);
  bench.Line(1, 0, "step");
  bench->Finish(Rank(0), At(2));
  EXPECT_THAT(bench.Fired(99), IsEmpty());
}

TEST(StreamOfARule, LeavesTheOtherAlone) {
  LogRule rule = Rule("CUDA error");
  rule.fault = true;
  rule.stream = Stream::kErr;
  Bench bench(rule);
  bench.Line(1, 0, "CUDA error: x", Stream::kOut);
  EXPECT_THAT(bench.Fired(1), IsEmpty());
  bench.Line(2, 1, "CUDA error: y", Stream::kErr);
  EXPECT_THAT(bench.Fired(2), ElementsAre("1@2 'CUDA error: y' matched"));
}

TEST(Values, AreJudgedByTheThresholdAsManyInARowAsItSays) {
  LogRule rule = Rule("tok/s (\\S+)");
  rule.threshold = spec::Threshold{spec::Threshold::Operator::kAtMost, 80};
  rule.points = 3;
  Bench bench(rule);
  for (const char* value : {"80", "79", "81", "1", "2"})
    bench.Line(1, 0, fmt::format("tok/s {}", value));
  EXPECT_THAT(bench.Fired(1), IsEmpty());
  bench.Line(2, 0, "tok/s 3e0");
  EXPECT_THAT(bench.Fired(2), ElementsAre("0@2 3e0, the last of 3 values in a row, <= 80"));
}

TEST(NonNumbers, AreAFaultUnlessTheRuleSaysOtherwise) {
  for (const char* value : {"nan", "NaN", "-nan", "inf", "-Infinity", "", "oops", "1.5.2"}) {
    Bench bench(Rule("loss=(.*)"));
    bench.Line(1, 1, fmt::format("loss={}", value));
    EXPECT_THAT(bench.Fired(1), ElementsAre(fmt::format("1@1 '{}' is not a number", value)));
  }
  Bench bench(Rule("loss=(.*)"));
  bench.Line(1, 1, "loss=0.25");
  EXPECT_THAT(bench.Fired(1), IsEmpty());
}

TEST(NonNumbers, CountAsValuesThatBreakTheThresholdWhenSlow) {
  LogRule rule = Rule("loss=(.*)");
  rule.on_non_number = LogRule::NonNumber::kSlow;
  rule.threshold = spec::Threshold{spec::Threshold::Operator::kAbove, 5};
  rule.points = 2;
  Bench bench(rule);
  bench.Line(1, 0, "loss=nan");
  bench.Line(2, 0, "loss=6");
  EXPECT_THAT(bench.Fired(2), ElementsAre("0@2 6, the last of 2 values in a row, > 5"));
}

TEST(NonNumbers, AreMatchesWithoutAValueWhenIgnored) {
  LogRule rule = Rule("loss=(.*)");
  rule.on_non_number = LogRule::NonNumber::kIgnore;
  rule.every = seconds(5);
  Bench bench(rule);
  bench.Line(1, 0, "loss=nan");
  bench.Line(5, 0, "loss=nan");
  EXPECT_THAT(bench.Fired(9.9), IsEmpty());
  EXPECT_THAT(bench.Fired(10), ElementsAre(HasSubstr("no line matched for 5s")));
}

TEST(NonNumbers, AreNotSeenInAGroupThatTookNoPart) {
  Bench bench(Rule("done|loss=(.*)"));
  bench.Line(1, 0, "done");
  EXPECT_THAT(bench.Fired(1), IsEmpty());
}

TEST(Stop, EndsARuleUntilTheNextGeneration) {
  LogRule rule = Rule("step");
  rule.start_within = seconds(5);
  rule.every = seconds(5);
  rule.stop = "training done";
  Bench bench(rule);
  bench.Line(1, 0, "step");
  bench.Line(2, 1, "training done");
  EXPECT_THAT(bench.Fired(99), IsEmpty());
  bench->Begin(Generation(2), At(100));
  bench->Go(At(100));
  EXPECT_THAT(bench.Fired(105), ElementsAre("0@105 no line matched within 5s of the start"));
}

TEST(Stop, EndsARuleForOneRankWhenItsScopeIsEach) {
  LogRule rule = Rule("step");
  rule.start_within = seconds(5);
  rule.stop = "done";
  rule.scope = Scope::kEach;
  Bench bench(rule);
  bench.Line(2, 1, "done");
  EXPECT_THAT(bench.Fired(9), ElementsAre("0@5 no line matched within 5s of the start"));
}

TEST(Stop, IsLookedAtBeforeThePattern) {
  LogRule rule = Rule("loss=(.*)");
  rule.stop = "final";
  Bench bench(rule);
  bench.Line(1, 0, "final loss=nan");
  EXPECT_THAT(bench.Fired(1), IsEmpty());
}

TEST(Actions, ThatEndAGenerationFireOnceInIt) {
  Bench bench(Rule("loss=(.*)"));
  for (int s = 1; s < 5; ++s) bench.Line(s, 0, "loss=nan");
  EXPECT_EQ(bench.Fired(5).size(), 1U);
}

TEST(Actions, ThatOnlyTellKeepFurtherMatchesToThemselvesForAWhile) {
  LogRule rule = Rule("warning");
  rule.fault = true;
  rule.action = Act::kNotify;
  Bench bench(rule);
  for (int i = 0; i < 100; ++i) bench.Line(1 + i * 0.01, 0, "warning");
  EXPECT_THAT(bench.Fired(5), ElementsAre("0@1 'warning' matched"));
  bench.Line(12, 0, "warning");
  EXPECT_THAT(bench.Fired(12), ElementsAre("0@12 'warning' matched (99 more before)"));
}

TEST(Gap, IsNoProofOfSilence) {
  LogRule rule = Rule("step");
  rule.every = seconds(5);
  Bench bench(rule);
  bench.Line(1, 0, "step");
  bench->Gap(Rank(0), At(5));
  EXPECT_THAT(bench.Fired(9.9), IsEmpty());
  EXPECT_EQ(bench.Fired(10).size(), 1U);
}

TEST(Skip, MovesWhatIsWaitedFor) {
  LogRule rule = Rule("step");
  rule.start_within = seconds(5);
  Bench bench(rule);
  bench->Skip(minutes(1));
  EXPECT_THAT(bench.Fired(64), IsEmpty());
  EXPECT_EQ(bench.Fired(65).size(), 1U);
}

TEST(Firing, ShowsWhatItMatchedAsPlainText) {
  using std::string_view_literals::operator""sv;
  LogRule rule = Rule("error.*");
  rule.fault = true;
  Bench bench(rule);
  bench.Line(1, 0, "error \x1b[31m\0 \xff"sv);
  const auto fired = bench.Fired(1);
  ASSERT_EQ(fired.size(), 1U);
  EXPECT_EQ(fired[0].find('\x1b'), std::string::npos);
  Bench another(rule);
  another.Line(1, 0, "error " + std::string(60'000, 'x'));
  EXPECT_LT(another.Fired(1).at(0).size(), 200U);
}

TEST(LiteralFilter, FindsWhatIsThereAndNothingElse) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    const auto word = [&](std::uint64_t most) {
      std::string text;
      for (auto n = rng.Below(most); n > 0; --n) text += "abc"[rng.Below(3)];
      return text;
    };
    std::vector<std::string> texts;
    for (int i = 0; i < 6; ++i) texts.push_back(word(5));
    const LiteralFilter filter(texts);
    const std::string line = word(30);
    std::vector<std::uint8_t> found(texts.size());
    filter.Find(line, found);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const bool there = !texts[i].empty() && line.find(texts[i]) != std::string::npos;
      ASSERT_EQ(found[i] != 0, there) << texts[i] << " in " << line;
    }
  }
}

std::vector<LogRule> RandomRules(Rng& rng) {
  constexpr const char* kPatterns[] = {"loss=(\\S*)", "step", "(a|b)c?", ".*", "[^x]+=(.+)"};
  std::vector<LogRule> rules;
  for (auto n = 1 + rng.Below(8); n > 0; --n) {
    LogRule rule = Rule(kPatterns[rng.Below(5)]);
    if (rng.Below(2) == 0) rule.start_within = milliseconds(1 + rng.Below(3000));
    if (rng.Below(2) == 0) rule.every = milliseconds(1 + rng.Below(3000));
    if (rng.Below(3) == 0) rule.threshold = spec::Threshold{spec::Threshold::Operator::kAbove, 3};
    rule.points = 1 + static_cast<std::uint32_t>(rng.Below(3));
    if (rng.Below(3) == 0) rule.stop = kPatterns[rng.Below(2)];
    rule.scope = static_cast<Scope>(rng.Below(4));
    rule.stream = static_cast<Stream>(rng.Below(3));
    rule.on_non_number = static_cast<LogRule::NonNumber>(rng.Below(3));
    rule.action = static_cast<Act>(rng.Below(6));
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::string RandomLine(Rng& rng) {
  constexpr std::string_view kPieces[] = {"loss=", "step", "1.5", "nan", " ", "\xff\xfe", "a", "="};
  std::string line;
  for (auto n = rng.Below(9); n > 0; --n) line += kPieces[rng.Below(std::size(kPieces))];
  if (rng.Below(8) == 0) line += '\0';
  if (rng.Below(500) == 0) line.append(65536, 'z');
  return line;
}

// 10⁵ random events: it never crashes, never names a rank that is not there, never fires while
// paused, and an action that ends a generation fires at most once in it (each: once a rank).
TEST(RuleEngine, KeepsItsPromisesOverRandomHistories) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    const auto ranks = static_cast<std::uint32_t>(1 + rng.Below(4));
    const auto rules = RandomRules(rng);
    RuleEngine engine = *RuleEngine::Create(rules, ranks);
    std::uint64_t generation = 1;
    bool paused = true;
    std::set<std::tuple<std::size_t, std::uint64_t, std::uint32_t>> acted;
    Instant now = At(0);
    for (int i = 0; i < 1000; ++i) {
      now += milliseconds(rng.Below(400));
      const Rank rank(static_cast<std::uint32_t>(rng.Below(ranks + 1)));
      const auto what = rng.Below(100);
      if (what < 3) {
        engine.Begin(Generation(++generation), now);
        engine.Go(now);
        paused = false;
      } else if (what < 5) {
        engine.Tick(now);
        engine.TakeFirings();
        engine.Pause();
        paused = true;
      } else if (what < 6) {
        engine.Finish(rank, now);
      } else if (what < 7) {
        engine.Gap(rank, now);
      } else if (what < 30) {
        engine.Tick(now);
      } else {
        engine.TakeLine(rank, rng.Below(2) == 0 ? Stream::kOut : Stream::kErr, RandomLine(rng),
                        now);
      }
      for (const Firing& firing : engine.TakeFirings()) {
        ASSERT_FALSE(paused) << seed;
        ASSERT_LT(firing.rank.value(), ranks) << seed;
        ASSERT_LE(firing.time, now) << seed;
        ASSERT_EQ(firing.generation.value(), generation) << seed;
        if (OnlyTells(firing.action)) continue;
        const bool each = rules[firing.rule].scope == Scope::kEach;
        ASSERT_TRUE(acted.insert({firing.rule, generation, each ? firing.rank.value() : 0}).second)
            << seed;
      }
    }
  }
}

}  // namespace
}  // namespace muster::agent::rules
