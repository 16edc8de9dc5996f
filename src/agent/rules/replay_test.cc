#include "agent/rules/replay.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent::rules {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

std::optional<std::string> Stamp(std::string_view line) {
  const auto time = ReadLineTime(line);
  if (!time) return std::nullopt;
  const std::string utc = FormatUtc(WallTime(time->time));
  return time->kind == LineTimeKind::kInstant ? utc : utc.substr(11, 12);
}

TEST(LineTime, ReadsTheStampsThatProgramsWrite) {
  EXPECT_EQ(Stamp("2026-11-29T21:38:14.123Z step"), "2026-11-29T21:38:14.123Z");
  EXPECT_EQ(Stamp("2026-11-29 21:38:14,123 [INFO] x"), "2026-11-29T21:38:14.123Z");
  EXPECT_EQ(Stamp("[2026-11-29 21:38:14] x"), "2026-11-29T21:38:14.000Z");
  EXPECT_EQ(Stamp("2026-11-29T21:38:14+02:00"), "2026-11-29T19:38:14.000Z");
  EXPECT_EQ(Stamp("2026-11-29T21:38:14-0130"), "2026-11-29T23:08:14.000Z");
  EXPECT_EQ(Stamp("1764452294.5 x"), "2025-11-29T21:38:14.500Z");
  EXPECT_EQ(Stamp("[21:38:14.25] x"), "21:38:14.250");
  for (const char* none : {"", "step 5", "2026-13-29T21:38:14Z", "2026-11-29", "25:00:00", "21:38",
                           "176445229", "17644522945", "2026-11-29T21:38", "[", "99:99:99"}) {
    EXPECT_EQ(Stamp(none), std::nullopt) << none;
  }
}

TEST(LineClock, NeverGoesBackAndPassesMidnight) {
  LineClock clock;
  EXPECT_EQ(clock.Next("no stamp"), std::nullopt);
  EXPECT_EQ(clock.Next("23:59:59 a"), hours(24) - seconds(1));
  EXPECT_EQ(clock.Next("no stamp"), hours(24) - seconds(1));
  EXPECT_EQ(clock.Next("23:59:58 from another writer"), hours(24) - seconds(1));
  EXPECT_EQ(clock.Next("00:00:01 b"), hours(24) + seconds(1));
  EXPECT_EQ(clock.Next("23:59:59 from another writer"), hours(24) + seconds(1));
}

TEST(IdOfPath, KnowsTheLogsOfARunFolder) {
  EXPECT_EQ(IdOfPath("runs/rank-test/logs/rank-3/gen-12.stderr.log"),
            (LogId{Rank(3), Generation(12), Stream::kErr}));
  EXPECT_EQ(IdOfPath("train.log"), (LogId{Rank(0), Generation(1), Stream::kOut}));
  EXPECT_EQ(IdOfPath("rank-99999999999/gen-x.stdout.log"),
            (LogId{Rank(0), Generation(1), Stream::kOut}));
}

std::vector<std::string> Fired(const Replayed& replayed) {
  std::vector<std::string> fired;
  for (const OldFiring& old : replayed.firings) {
    fired.push_back(fmt::format("{} gen {} line {}{}: {}", old.firing.name,
                                old.firing.generation.value(), old.silence ? "before " : "",
                                old.line, old.firing.why));
  }
  return fired;
}

const std::vector<spec::LogRule> kRules = {
    {.name = "loss", .pattern = "loss=(\\S+)"},
    {.name = "steps", .pattern = "step", .start_within = seconds(30), .every = seconds(10)}};

TEST(Replay, SaysWhenRulesWouldHaveFired) {
  const auto replayed = Replay(kRules, {{IdOfPath("gen-1.stdout.log"), "a",
                                         "12:00:00 hello\n12:00:20 step 1 loss=2\n"
                                         "12:00:25 step 2 loss=nan\n12:00:40 step 3 loss=nan\n"}});
  ASSERT_TRUE(replayed.has_value());
  EXPECT_THAT(Fired(*replayed),
              ElementsAre("loss gen 1 line 3: 'nan' is not a number",
                          "steps gen 1 line before 4: no line matched for 10s; rank 0 showed the "
                          "last one"));
  EXPECT_THAT(replayed->matches, ElementsAre(2U, 2U));
  EXPECT_EQ(replayed->firings[1].firing.time, Instant(hours(12) + seconds(35)));
}

TEST(Replay, JudgesMatchesAndValuesOfALogWithoutStamps) {
  const auto replayed =
      Replay(kRules, {{IdOfPath("x"), "a", "step 1 loss=2\nstep 2 loss=nan\nend"}});
  ASSERT_TRUE(replayed.has_value());
  EXPECT_EQ(replayed->kind, std::nullopt);
  EXPECT_EQ(replayed->lines, 3U);
  EXPECT_THAT(Fired(*replayed), ElementsAre("loss gen 1 line 2: 'nan' is not a number"));
}

TEST(Replay, MergesRanksByTimeAndBeginsAnewWithEachGeneration) {
  const std::vector<spec::LogRule> rules = {
      {.name = "steps", .pattern = "step", .every = seconds(10)}};
  const auto log = [](const char* path, std::string_view text) {
    return OldLog{IdOfPath(path), path, text};
  };
  const auto replayed =
      Replay(rules, {log("rank-0/gen-1.stdout.log", "12:00:00 step\n12:00:18 step\n"),
                     log("rank-1/gen-1.stdout.log", "12:00:09 step\n"),
                     log("rank-0/gen-2.stdout.log", "12:10:00 step\n12:10:11 step\n")});
  ASSERT_TRUE(replayed.has_value());
  EXPECT_THAT(Fired(*replayed), ElementsAre("steps gen 2 line before 2: no line matched for 10s; "
                                            "rank 0 showed the last one"));
}

TEST(Replay, RefusesLogsWhoseStampsCannotBeCompared) {
  const auto replayed = Replay(kRules, {{IdOfPath("x"), "a", "12:00:00 x\n"},
                                        {IdOfPath("y"), "b", "2026-11-29T21:38:14Z x\n"}});
  ASSERT_FALSE(replayed.has_value());
  EXPECT_EQ(replayed.error().code(), Code::kInvalid);
}

TEST(Replay, TakesAnEmptyLog) {
  const auto replayed = Replay(kRules, {{IdOfPath("x"), "a", ""}});
  ASSERT_TRUE(replayed.has_value());
  EXPECT_THAT(replayed->firings, IsEmpty());
}

}  // namespace
}  // namespace muster::agent::rules
